"""Requests to a completions server: passing errors are waited out, lasting ones are said.

Nothing here knows what the answers mean. No message has the API key in it.
"""

import json
import time
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from requests.exceptions import ChunkedEncodingError, ContentDecodingError

LONGEST_WAIT = 60.0  # seconds, whatever Retry-After says
PASSING_STATUSES = frozenset({408, 425, 429, *range(500, 600)})
LONGEST_QUOTE = 300  # characters of a server's message


class ServerUnavailable(RuntimeError):
    """The server does not answer, or only with passing errors; it may be asked again later."""


class ServerAnswerInvalid(RuntimeError):
    """The server answers what cannot be decoded with.

    ``said`` is the server's own message, if it refused with one, and ``status`` the refusal's.
    """

    def __init__(self, message: str, *, said: str = "", status: int = 0) -> None:
        super().__init__(message)
        self.said = said
        self.status = status


class CompletionsClient:
    """The server at ``address``, which ends in ``/v1`` as a rule. For many threads.

    ``timeout`` is in seconds. A request that fails in passing is tried ``retries`` times more, after
    ``backoff`` seconds and then twice as many each time, or after what the server's Retry-After says.
    """

    def __init__(
        self, address: str, *, api_key: str, timeout: float, retries: int, backoff: float, connections: int
    ) -> None:
        if not (api_key.isascii() and api_key.isprintable()):
            raise ValueError("The API key has a character that no key has, such as a line's end. Set it again.")
        self.address = address
        self.api_key = api_key
        self.timeout = timeout
        self.retries = retries
        self.backoff = backoff
        self.session = requests.Session()
        self.session.auth = self._authorize
        self.session.mount(address, HTTPAdapter(pool_connections=1, pool_maxsize=connections))

    def request(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """What the server answers to ``body``, or to a GET without.

        Raises ``ServerUnavailable`` and ``ServerAnswerInvalid``.
        """
        trouble, wait = "", 0.0
        for attempt in range(self.retries + 1):
            time.sleep(wait)
            wait = self.backoff * 2**attempt
            try:
                response = self.session.request(
                    "GET" if body is None else "POST",
                    self.address + path,
                    json=body,
                    timeout=self.timeout,
                    allow_redirects=False,
                )
            except requests.Timeout:
                trouble = f"did not answer within {self.timeout:g} seconds"
            except (requests.ConnectionError, ChunkedEncodingError, ContentDecodingError) as error:
                trouble = f"cannot be reached, or breaks off ({type(error).__name__})"
            else:
                if response.status_code == 200:
                    return self._read(response, path)
                said = self._said(response)
                if response.status_code not in PASSING_STATUSES or _refuses(said, body):
                    raise self._refusal(response.status_code, path, said)
                trouble = f"answers with status {response.status_code}{_quoted(said)}"
                wait = max(wait, _retry_after(response))
        raise ServerUnavailable(
            f"The completions server {self.address} {trouble}; it was tried {self.retries + 1} times. "
            "See that it runs and has room, and start again."
        )

    def _authorize(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Send the key. Set as the session's own way, it also keeps out what a .netrc says."""
        if self.api_key:
            request.headers["Authorization"] = f"Bearer {self.api_key}"
        return request

    def _read(self, response: requests.Response, path: str) -> dict[str, Any]:
        try:
            answer = _json_of(response)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise ServerAnswerInvalid(
                f"The completions server {self.address} answers {path} with what is no JSON object"
                f"{_quoted(self._said(response))}. Check the address, which ends in /v1 as a rule."
            )
        return answer

    def _refusal(self, status: int, path: str, said: str) -> ServerAnswerInvalid:
        return ServerAnswerInvalid(
            f"The completions server {self.address} refuses {path} with status {status}{_quoted(said)}. "
            f"{_advice(status)}",
            said=said,
            status=status,
        )

    def _said(self, response: requests.Response) -> str:
        """The message of an answer that is no good, on one line, without the key."""
        try:
            answer = _json_of(response)
        except ValueError:
            answer = response.text
        # OpenAI, llama.cpp and new vLLM: {"error": {"message": …}}; older vLLM: {"message": …}; FastAPI: {"detail": …}.
        for key in ("error", "message", "detail"):
            if isinstance(answer, dict) and key in answer:
                answer = answer[key]
        text = " ".join(str(answer).split())
        if self.api_key:
            text = text.replace(self.api_key, "…")
        return text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "…"


def _json_of(response: requests.Response) -> Any:
    """What an answer holds, by Python's own reader: that of ``requests`` depends on what else is installed."""
    return json.loads(response.content)


def _refuses(said: str, body: dict[str, Any] | None) -> bool:
    """Whether a server error is about what was asked, as llama.cpp's “Only no echo is supported”."""
    return any(option in said.lower() for option in ("echo", "logprobs") if body and option in body)


def _retry_after(response: requests.Response) -> float:
    """Seconds; 0 where the header is missing or a date, which these servers do not write."""
    header = response.headers.get("Retry-After", "")
    return min(float(header), LONGEST_WAIT) if header.isdecimal() else 0.0


def _quoted(said: str) -> str:
    return f": “{said}”" if said else ""


def _advice(status: int) -> str:
    if status in (401, 403):
        return "Check the API key."
    if status == 404:
        return "Check the address, which ends in /v1 as a rule, and the model's id after the #."
    return "Check the address and what the server can do."
