"""A real completions server on a free port, backed by a toy, that misbehaves on command."""

import json
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

OPENAI, LLAMA_CPP = "openai", "llama.cpp"

LogProbs = Mapping[bytes, float]
Fault = Callable[["_Handler"], None]


class CompletionsServer(AbstractContextManager):
    """Serves ``/v1/models`` and ``/v1/completions``.

    ``log_probs`` gives the log-probability of each piece after a text. ``shape`` is whose answers it
    writes. Prompts are echoed in OpenAI's, each token as it is ``spelled``; in llama.cpp's, and
    anywhere if it ``ignores_echo``, they are not. ``most`` is the most log-probabilities that it gives,
    and ``seconds`` how long an answer takes. If it samples a ``silent`` piece it gives none. Each
    completion but an echo meets the next of ``faults`` instead of its answer, while there are any.
    """

    def __init__(
        self,
        log_probs: Callable[[str], LogProbs],
        *,
        shape: str = OPENAI,
        models: Sequence[str] = ("toy",),
        most: int = 1000,
        seconds: float = 0.0,
        silent: Sequence[bytes] = (),
        ignores_echo: bool = False,
        spelled: Callable[[str], str] = str,
    ) -> None:
        self.log_probs, self.shape, self.models, self.most, self.seconds = log_probs, shape, models, most, seconds
        self.silent, self.ignores_echo, self.spelled = silent, ignores_echo, spelled
        self.faults: list[Fault] = []
        self.asked: list[dict[str, Any]] = []
        self.keys: set[str | None] = set()
        self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()
        self.released = threading.Event()
        handler = type("Handler", (_Handler,), {"completions": self})
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.http.server_port}/v1"

    @property
    def questions(self) -> list[dict[str, Any]]:
        """What was asked but for echoes."""
        return [body for body in self.asked if not body.get("echo")]

    def __enter__(self) -> "CompletionsServer":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


class _Handler(BaseHTTPRequestHandler):
    completions: CompletionsServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # an answer is one packet, which nobody waits to acknowledge

    def do_GET(self) -> None:
        self.completions.keys.add(self.headers.get("Authorization"))
        if self.path != "/v1/models":
            return self.refuse(404, "Not found")
        self.answer({"object": "list", "data": [{"id": name} for name in self.completions.models]})

    def do_POST(self) -> None:
        server = self.completions
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server.keys.add(self.headers.get("Authorization"))
        with server.lock:
            server.asked.append(body)
            server.at_once += 1
            server.most_at_once = max(server.most_at_once, server.at_once)
            fault = server.faults.pop(0) if server.faults and not body.get("echo") else None
        try:
            time.sleep(server.seconds)
            fault(self) if fault else self.complete(body)
        finally:
            with server.lock:
                server.at_once -= 1

    def complete(self, body: dict[str, Any]) -> None:
        if body["model"] not in self.completions.models:
            return self.refuse(404, f"The model `{body['model']}` does not exist.")
        if body.get("echo") and not self.completions.ignores_echo:
            return self.echo(body["prompt"])
        table = self.completions.log_probs(body["prompt"])
        best = sorted(table.items(), key=lambda pair: -pair[1])
        sampled = best[0][0] if not body["temperature"] else best[body["seed"] % len(best)][0]
        given = best[: min(body["logprobs"], self.completions.most)]
        if sampled in self.completions.silent:
            text = "\ufffd" if self.completions.shape == LLAMA_CPP else ""
            logprobs = None if self.completions.shape == LLAMA_CPP else {"tokens": [], "top_logprobs": []}
            return self.answer({"choices": [{"text": text, "logprobs": logprobs}]})
        write = _openai if self.completions.shape == OPENAI else _llama_cpp
        choice = {"text": sampled.decode(errors="replace"), "logprobs": write(given)}
        self.answer({"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 1}})

    def echo(self, prompt: str) -> None:
        """The prompt's tokens, the toy's pieces where they fit, and one more."""
        if self.completions.shape == LLAMA_CPP:
            return self.refuse(500, "Only no echo is supported")
        pieces = sorted((piece.decode(errors="replace") for piece in self.completions.log_probs("")), key=len)
        tokens, rest = [], prompt
        while rest:
            token = next((piece for piece in reversed(pieces) if piece and rest.startswith(piece)), rest[0])
            tokens.append(self.completions.spelled(token))
            rest = rest[len(token) :]
        logprobs = {"tokens": ["<|begin_of_text|>", *tokens, " next"], "top_logprobs": []}
        usage = {"prompt_tokens": 1 + len(tokens), "completion_tokens": 1}
        self.answer({"choices": [{"text": prompt, "logprobs": logprobs}], "usage": usage})

    def answer(self, content: dict[str, Any], *, status: int = 200, **headers: str) -> None:
        self.send(json.dumps(content).encode(), status=status, **headers)

    def refuse(self, status: int, message: str, **headers: str) -> None:
        self.answer({"error": {"message": message, "code": status}}, status=status, **headers)

    def send(self, content: bytes, *, status: int = 200, length: int | None = None, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content) if length is None else length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Tests need no log."""


def _openai(given: Sequence[tuple[bytes, float]]) -> dict[str, Any]:
    tops = {_text(piece): max(log_prob, -9999.0) for piece, log_prob in given}
    return {"tokens": [next(iter(tops), "")], "top_logprobs": [tops]}


def _text(piece: bytes) -> str:
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in piece)


def _llama_cpp(given: Sequence[tuple[bytes, float]]) -> dict[str, Any]:
    tops = [
        {
            "id": number,
            "token": piece.decode(errors="ignore"),
            "bytes": list(piece),
            "logprob": -3.4e38 if log_prob == -math.inf else log_prob,
        }
        for number, (piece, log_prob) in enumerate(given)
    ]
    return {"content": [{**tops[0], "top_logprobs": tops}]}


# --- Faults -----------------------------------------------------------------------------


def refusing(status: int, message: str = "Busy", **headers: str) -> Fault:
    return lambda handler: handler.refuse(status, message, **headers)


def sending(content: bytes) -> Fault:
    """An answer of these bytes."""
    return lambda handler: handler.send(content)


def answering(**choice: Any) -> Fault:
    """An answer with this choice."""
    return lambda handler: handler.answer({"choices": [choice]})


def breaking_off(handler: "_Handler") -> None:
    """An answer that announces more than it sends."""
    handler.send(b'{"choices": [{"te', length=1000)
    handler.close_connection = True


def hanging(handler: "_Handler") -> None:
    """No answer while the server lives."""
    handler.completions.released.wait()
    handler.close_connection = True
