"""What completions servers answer: the candidates for the next token, in one form for all of them."""

import math
import re
from collections.abc import Iterable
from typing import Any

NEVER = -math.inf
IMPOSSIBLE = -9999.0  # how vLLM writes minus infinity, which JSON does not have; llama.cpp's is lower

# Special tokens by their usual names. vLLM writes them out; llama.cpp leaves their text empty.
MARK = re.compile(r"<[|｜].+[|｜]>|</?s>|<(?:bos|eos|pad|unk|eot|end_of_turn|start_of_turn)>")
ESCAPED = re.compile(r"bytes:((?:\\x[0-9a-fA-F]{2})+)")  # how OpenAI writes bytes that are no text
HALF_A_CHARACTER = "\ufffd"  # how servers write them all

Candidate = tuple[bytes | None, float]
"""A token's text, or ``None`` for half a character, and its log-probability."""


def next_token(choice: dict[str, Any]) -> list[Candidate]:
    """The candidates for the first new token, likeliest first; none where the answer has no such token.

    OpenAI and vLLM write {"top_logprobs": [{text: log-probability, …}]}, llama.cpp {"content":
    [{"top_logprobs": [{"token": text, "bytes": [byte, …], "logprob": log-probability}, …]}]}.
    """
    logprobs = choice.get("logprobs")
    if not logprobs:
        return []
    if "content" in logprobs:
        first = (logprobs["content"] or [{"top_logprobs": []}])[0]
        found = [(piece_of(top["token"], top.get("bytes")), top["logprob"]) for top in first["top_logprobs"]]
    else:
        first = (logprobs["top_logprobs"] or [None])[0] or {}
        found = [(piece_of(text), log_prob) for text, log_prob in first.items()]
    candidates = sorted(((piece, _log_prob(value)) for piece, value in found), key=lambda candidate: -candidate[1])
    if candidates and candidates[0][1] == NEVER:
        raise ValueError("No token is possible.")
    return candidates


def piece_of(text: str, raw: list[int] | None = None) -> bytes | None:
    """The bytes of a token that a server writes as ``text``, with its bytes or without; of a mark none.

    Where there are no bytes, an empty text can be that of a mark and of half a character (vLLM and
    llama-cpp-python have written both so), and is taken for the latter.

    >>> piece_of(" rain"), piece_of("</s>"), piece_of(r"bytes:\\xe2\\x80"), piece_of("", [240, 159])
    (b' rain', b'', None, None)
    """
    try:
        if raw is not None:
            piece = bytes(raw)
        elif escaped := ESCAPED.fullmatch(text):
            piece = bytes.fromhex(escaped[1].replace(r"\x", ""))
        elif text:
            piece = text.encode()
        else:
            return None
        decoded = piece.decode()
    except UnicodeError:
        return None
    return None if HALF_A_CHARACTER in decoded else b"" if MARK.fullmatch(decoded) else piece


def _log_prob(value: float | None) -> float:
    """A log-probability as a server writes it; raises ``ValueError`` for what is none."""
    log_prob = float(NEVER if value is None else value)
    if math.isnan(log_prob):
        raise ValueError("A log-probability is no number.")
    return log_prob if log_prob > IMPOSSIBLE else NEVER


def log_sum(log_probs: Iterable[float]) -> float:
    """The logarithm of a sum of probabilities."""
    values = list(log_probs)
    highest = max(values, default=NEVER)
    return NEVER if highest == NEVER else highest + math.log(sum(math.exp(value - highest) for value in values))
