"""A language model behind an OpenAI-compatible completions server, such as vLLM or llama.cpp.

Of a server one can ask for the likeliest next tokens of a text, and nothing else. So a hypothesis is
the text of its prompt and of its tokens so far, which the server cuts into tokens anew at every
step. Tokens have numbers of our own, one a text: two tokens of the same text are one. A token that
is half a character cannot be sent back as text, so it is no candidate.

A server gives its n best log-probabilities at temperature 1, over its whole vocabulary. At another
temperature T they are the log-softmax of log p / T over these n: the vocabulary is restricted to its
n best, as the paper does with GPT-3. At temperature 1 they are as the server gives them.
"""

import itertools
import math
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import torch
from torch import Tensor

from generation.decoding.protocols import NextTokens
from generation.engines.completions_answers import HALF_A_CHARACTER, NEVER, Candidate, log_sum, next_token, piece_of
from generation.engines.completions_client import CompletionsClient, ServerAnswerInvalid, ServerUnavailable

__all__ = [
    "CompletionsLanguageModel",
    "PromptTooLong",
    "ServerAnswerInvalid",
    "ServerUnavailable",
    "TooFewLogProbs",
    "connect",
    "is_server",
]

TIMEOUT = 60.0  # seconds
RETRIES = 4
BACKOFF = 0.5  # seconds
CONCURRENCY = 16

WHOLE = 1 - 1e-4  # the probability of all tokens together, less rounding
PROBE = "one two three"
SAMPLES = 5
PROMPTS_KEPT = 4096

END = 0
"""The number of every mark that ends a text: they have no text of their own."""

LIMIT = re.compile(r"greater|less|more|max|most|exceed|between|>|<")  # in a refusal that is about a number


class TooFewLogProbs(ServerAnswerInvalid):
    """The server gives fewer log-probabilities than were asked for."""


class PromptTooLong(ServerAnswerInvalid):
    """A prompt and what follows it are longer than the served model reads."""


def is_server(name: str) -> bool:
    """Whether a language model's name is a server's address.

    >>> is_server("http://localhost:8000/v1#gpt-j"), is_server("smollm2-135m-instruct")
    (True, False)
    """
    return name.startswith(("http://", "https://"))


def connect(
    name: str,
    *,
    api_key: str = "",
    timeout: float = TIMEOUT,
    retries: int = RETRIES,
    backoff: float = BACKOFF,
    concurrency: int = CONCURRENCY,
) -> "CompletionsLanguageModel":
    """The model of that name: ``http://host:8000/v1#model-id``, or the server's first where no id is given.

    ``timeout`` is in seconds an answer. A request that fails in passing is tried ``retries`` times more,
    after ``backoff`` seconds and then twice as many each time. At most ``concurrency`` requests are under
    way at once.

    Raises ``ValueError`` for a name that is no address, ``ServerUnavailable`` and ``ServerAnswerInvalid``.
    """
    address, model_id = _address(name)
    client = CompletionsClient(
        address, api_key=api_key, timeout=timeout, retries=retries, backoff=backoff, connections=concurrency
    )
    model = CompletionsLanguageModel(client, name=name, model_id=_served(client, model_id), concurrency=concurrency)
    written = model.decode(model.encode(PROBE))  # finds out as well whether completions are answered at all
    if model.prompt_tokens == "echo" and written.strip() != PROBE:
        raise ServerAnswerInvalid(
            f"The completions server {address} writes the tokens of “{PROBE}” as “{written}”: what it writes of other "
            "tokens would be wrong as well. Some versions of vLLM lose blanks; use a newer one, or llama.cpp."
        )
    return model


class CompletionsLanguageModel:
    """A served model behind ``decoding.protocols.LanguageModel``.

    ``prompt_tokens`` says how the tokens of a prompt are known: ``"echo"``, as the server cuts them, or
    ``"words"``, each word with a blank before it and without, where it does not echo prompts.
    """

    device = "server"
    dtype = ""

    def __init__(self, client: CompletionsClient, *, name: str, model_id: str, concurrency: int) -> None:
        self.client = client
        self.name = name
        self.revision = model_id
        self.prompt_tokens = "echo"
        self._pool = ThreadPoolExecutor(concurrency, thread_name_prefix="completions")
        self._pieces = [b""]
        self._numbers = {b"": END}
        self._ending = {END}
        self._encoded: dict[str, list[int]] = {}
        self._prompt_texts: dict[int, str] = {}
        self._prompt_numbers = itertools.count(-1, -1)
        self._texts: list[str] = []  # of each hypothesis, its prompt's and its own
        self._best, self._temperature = 0, 1.0
        self._most_given = 0

    def encode(self, text: str) -> list[int]:
        """The tokens of ``text``, after a negative number that stands for the whole of it.

        By that number ``start`` knows the exact text, which the tokens may not tell. It has no text of
        its own. The last few thousand texts are remembered.
        """
        if text not in self._encoded:
            tokens = [self._number(piece) for piece in self._cut(text)]
            whole = next(self._prompt_numbers)
            self._encoded[text] = [whole, *tokens]
            self._prompt_texts[whole] = text
            if len(self._encoded) > PROMPTS_KEPT:
                oldest = self._encoded.pop(next(iter(self._encoded)))
                del self._prompt_texts[oldest[0]]
        return list(self._encoded[text])

    def decode(self, tokens: Sequence[int]) -> str:
        return b"".join(self._pieces[token] for token in tokens if token >= 0).decode(errors="replace")

    def ends(self, tokens: Tensor) -> Tensor:
        return torch.isin(tokens, torch.tensor(sorted(self._ending)))

    def start(self, prompts: Sequence[Sequence[int]], *, best: int, temperature: float, steps: int) -> NextTokens:
        """As the protocol says. ``steps`` is not needed: the server refuses a text once it is too long."""
        self._best, self._temperature = best, temperature
        self._texts = [self._prompt_text(prompt) for prompt in prompts]
        return self._next()

    def step(self, parents: Tensor, tokens: Tensor) -> NextTokens:
        pairs = zip(parents.tolist(), tokens.tolist(), strict=True)
        self._texts = [self._texts[parent] + self.decode([token]) for parent, token in pairs]
        return self._next()

    def close(self) -> None:
        """End the threads and the connections."""
        self._pool.shutdown(cancel_futures=True)
        self.client.session.close()

    def _next(self) -> NextTokens:
        """The n best of each of L hypotheses; what a row lacks of n has log-probability minus infinity."""
        distinct = list(dict.fromkeys(self._texts))
        answers = list(self._pool.map(self._ask, distinct))
        self._check_enough(answers)
        rows = {text: self._row(answer) for text, answer in zip(distinct, answers, strict=True)}
        tokens = torch.full((len(self._texts), self._best), END, dtype=torch.long)
        log_probs = torch.full((len(self._texts), self._best), NEVER)
        for number, text in enumerate(self._texts):
            row = rows[text]
            tokens[number, : len(row)] = torch.tensor([token for token, _ in row])
            log_probs[number, : len(row)] = torch.tensor([log_prob for _, log_prob in row])
        return NextTokens(tokens, log_probs)

    def _ask(self, text: str) -> list[Candidate]:
        """What the server gives for the next token of ``text``: n or one more, likeliest first.

        What it samples makes no difference to the log-probabilities, so it samples greedily: the same
        question has the same answer. But some servers give none if they sampled the end or half a
        character. Then they are asked to sample something else. If they cannot, the end is sure.
        """
        for options in [{"temperature": 0}, *({"temperature": 1, "seed": seed} for seed in range(SAMPLES))]:
            choice = self._choice(self._complete(text, logprobs=self._best, **options))
            try:
                given = next_token(choice)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                raise self._invalid("writes its log-probabilities in an unknown way.") from error
            if given:
                return given
            if (sampled := choice.get("text")) and not sampled.endswith(HALF_A_CHARACTER):
                break
        else:
            if self._most_given:
                return [(b"", 0.0)]
        raise self._invalid("gives no log-probabilities.")

    def _row(self, answer: list[Candidate]) -> list[tuple[int, float]]:
        """The numbers of the candidates and their log-probabilities, likeliest first."""
        best = answer[: self._best]
        if self._temperature != 1:
            scaled = [log_prob / self._temperature for _, log_prob in best]
            total = log_sum(scaled)
            best = [(piece, log_prob - total) for (piece, _), log_prob in zip(best, scaled, strict=True)]
        same: dict[int, list[float]] = {}
        for piece, log_prob in best:
            if piece is not None and log_prob > NEVER:
                same.setdefault(self._number(piece), []).append(log_prob)
        if not same:  # half a character is all there is, and a text that ends in one cannot be continued
            return [(END, best[0][1])]
        return sorted(((token, log_sum(shares)) for token, shares in same.items()), key=lambda pair: -pair[1])

    def _check_enough(self, answers: list[list[Candidate]]) -> None:
        """Raise ``TooFewLogProbs`` if the server holds back.

        It does not if it once gave as many as asked for, nor if that is its whole vocabulary. An answer
        with half a character or an end mark may be shorter: some servers write all of them alike, as one.
        """
        self._most_given = max(self._most_given, *map(len, answers))
        if self._most_given >= self._best:
            return
        for answer in answers:
            whole = math.exp(log_sum(log_prob for _, log_prob in answer)) > WHOLE
            merged = any(not piece for piece, _ in answer) and 2 * len(answer) >= self._best
            if not whole and not merged:
                raise self._too_few(f"gives {len(answer)}")

    def _too_few(self, what: str, *, said: str = "") -> TooFewLogProbs:
        return TooFewLogProbs(
            f"The completions server {self.client.address} was asked for the {self._best} likeliest tokens and {what}. "
            "Lower k (top-k) or vocabulary (ALICE), or let the server give more "
            f"(vLLM: --max-logprobs {self._best}).",
            said=said,
        )

    def _prompt_text(self, prompt: Sequence[int]) -> str:
        text = self._prompt_texts[prompt[0]] if prompt and prompt[0] < 0 else self.decode(prompt)
        if not text:
            raise ValueError("A completions server cannot continue an empty prompt. Give the prompt some text.")
        return text

    def _cut(self, text: str) -> list[bytes]:
        """The pieces of a text that candidates can be."""
        if self.prompt_tokens == "echo" and text:
            pieces = self._echoed(text)
            if pieces is not None:
                return pieces
            self.prompt_tokens = "words"
        return [blank + word.encode() for word in re.findall(r"\w+", text) for blank in (b" ", b"")]

    def _echoed(self, text: str) -> list[bytes] | None:
        """The tokens of ``text`` as the server cuts it, or ``None`` if it does not echo them."""
        try:
            answer = self._complete(text, logprobs=1, temperature=0, echo=True)
        except ServerAnswerInvalid as error:
            if "echo" in error.said.lower():
                return None
            raise
        logprobs, usage = self._choice(answer).get("logprobs"), answer.get("usage")
        tokens = logprobs.get("tokens") if isinstance(logprobs, dict) else None
        length = usage.get("prompt_tokens") if isinstance(usage, dict) else None
        if not isinstance(tokens, list) or not isinstance(length, int) or len(tokens) < length:
            return None
        if not all(isinstance(token, str) for token in tokens):
            return None
        return [piece for piece in map(piece_of, tokens[:length]) if piece]  # some append the token that follows

    def _complete(self, text: str, **options: Any) -> dict[str, Any]:
        body = {"model": self.revision, "prompt": text, "max_tokens": 1, **options}
        try:
            return self.client.request("/completions", body)
        except ServerAnswerInvalid as error:
            said = error.said.lower()
            if "logprobs" in said and LIMIT.search(said):
                raise self._too_few(f"refuses: “{error.said}”", said=error.said) from error
            if "context" in said:
                raise PromptTooLong(
                    "A prompt with what follows it is longer than the model of the completions server "
                    f"{self.client.address} reads: “{error.said}”. Use shorter demonstrations or fewer new tokens, or "
                    "start the server with a longer context (vLLM: --max-model-len, llama.cpp: --ctx-size).",
                    said=error.said,
                ) from error
            raise

    def _choice(self, answer: dict[str, Any]) -> dict[str, Any]:
        choices = answer.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise self._invalid("answers without choices.")
        return choices[0]

    def _invalid(self, what: str) -> ServerAnswerInvalid:
        return ServerAnswerInvalid(
            f"The completions server {self.client.address} {what} Use one whose /completions knows logprobs, such as "
            "vLLM or llama.cpp."
        )

    def _number(self, piece: bytes) -> int:
        number = self._numbers.setdefault(piece, len(self._pieces))
        if number == len(self._pieces):
            self._pieces.append(piece)
            if b"\n" in piece:
                self._ending.add(number)
        return number


def _address(name: str) -> tuple[str, str]:
    """The server's address and the model's id, which may be empty.

    >>> _address("http://localhost:8000#gpt-j")
    ('http://localhost:8000/v1', 'gpt-j')
    """
    try:
        parts = urlsplit(name)
        host, _ = parts.hostname, parts.port
    except ValueError:  # a port that is no number, or half an IPv6 address
        host = None
    if not is_server(name) or not host:
        raise ValueError(f"{name!r} is no address of a completions server. Write it as http://host:8000/v1#model-id.")
    if parts.username is not None or parts.query:
        raise ValueError(
            "A completions server's address is stored with each run, so it has no user name, password or query. "
            "Write it as http://host:8000/v1#model-id, and give the key as the API key."
        )
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/') or '/v1'}", parts.fragment


def _served(client: CompletionsClient, model_id: str) -> str:
    """The id of the model to ask for: the one wanted, or the server's first."""
    try:
        data = client.request("/models").get("data")
    except ServerAnswerInvalid as error:
        if error.status == 404 and model_id:  # not every server lists its models
            return model_id
        raise
    listed = data if isinstance(data, list) else []
    served = [model["id"] for model in listed if isinstance(model, dict) and isinstance(model.get("id"), str)]
    if not served:
        raise ServerAnswerInvalid(f"The completions server {client.address} lists no models. Start it with one.")
    if model_id and model_id not in served:
        raise ServerAnswerInvalid(
            f"The completions server {client.address} does not serve {model_id!r} but {', '.join(map(repr, served))}. "
            "Write the id of one of them after the #."
        )
    return model_id or served[0]
