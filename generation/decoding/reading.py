"""What the hypotheses of a search say, and what the classifier says of it."""

from collections.abc import Sequence
from weakref import WeakKeyDictionary

from generation.decoding.protocols import Classifier, LanguageModel, NotANumber, statement

HALF_A_CHARACTER = "\ufffd"

pieces_of: WeakKeyDictionary[LanguageModel, dict[int, str | None]] = WeakKeyDictionary()
"""What each token of a model adds to a text; ``None`` for a part of a character."""


class Texts:
    """What tokens say. A text is put together from its tokens' pieces, where they are whole characters."""

    def __init__(self, model: LanguageModel) -> None:
        self.model = model
        self.pieces = pieces_of.setdefault(model, {})

    def extended(self, raw: str | None, tokens: Sequence[int], token: int) -> tuple[str | None, str]:
        """The text of ``tokens`` and one more, and the statement that it makes.

        ``raw`` is the text of ``tokens`` alone, or ``None`` if it ends within a character, as what is returned.
        """
        piece = self._piece(token)
        if piece is not None and raw is not None:
            longer = raw + piece
            return longer, statement(longer)
        decoded = self.model.decode([*tokens, token])
        return (None if decoded.endswith(HALF_A_CHARACTER) else decoded), statement(decoded)

    def token(self, token: int) -> str:
        return self.model.decode([token])

    def _piece(self, token: int) -> str | None:
        if token not in self.pieces:
            # What the second of two adds: some tokenizers write the first one without its blank.
            once, twice = self.model.decode([token]), self.model.decode([token, token])
            whole = HALF_A_CHARACTER not in twice and twice.startswith(once)
            self.pieces[token] = twice[len(once) :] if whole else None
        return self.pieces[token]


class Ballot:
    """The classifier's votes, each text read once."""

    def __init__(self, classifier: Classifier, column: int) -> None:
        self.classifier, self.column = classifier, column
        self.votes: dict[str, tuple[float, float]] = {}

    @property
    def runs(self) -> int:
        return len(self.votes)

    def read(self, texts: Sequence[str]) -> None:
        new = list(dict.fromkeys(text for text in texts if text not in self.votes))
        if not new:
            return
        log_probs = self.classifier.log_probs(new)
        if bool(log_probs.isnan().any()):
            raise NotANumber("The classifier returned a log-probability that is no number.")
        self.votes.update(zip(new, map(tuple, log_probs.tolist()), strict=True))

    def sought(self, text: str) -> float:
        return self.votes[text][self.column]
