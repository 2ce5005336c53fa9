"""Texts with labels to train on. Without torch."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEAST_OF_A_CLASS = 2
_HALF = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Examples:
    """N ``texts``, for each whether it is ``toxic`` (N,) bool, and whether it is for ``validation`` (N,) bool."""

    texts: Sequence[str]
    toxic: NDArray[np.bool_]
    validation: NDArray[np.bool_]

    def __post_init__(self) -> None:
        for name in ("toxic", "validation"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=bool))
            if getattr(self, name).shape != (len(self.texts),):
                raise ValueError(f"{len(self.texts)} texts and {len(getattr(self, name))} values of {name}.")
        for number, text in enumerate(self.texts, 1):
            if _HALF.search(text):
                raise ValueError(
                    f"Text {number} of {len(self.texts)} has half of a character (a lone surrogate), which no "
                    "tokenizer reads. Mend it or leave it out."
                )

    def digest(self) -> str:
        """SHA-256 of texts, labels and parts, in their order."""
        digest = hashlib.sha256()
        for text, toxic, validation in zip(self.texts, self.toxic, self.validation, strict=True):
            encoded = text.encode()
            digest.update(f"{len(encoded)} {toxic:d} {validation:d} ".encode() + encoded)
        return digest.hexdigest()


def check(examples: Examples) -> None:
    """Raise ``ValueError`` unless both classes are among the texts to train on, and both among the others."""
    if not len(examples.texts):
        raise ValueError(f"There are no labelled texts to train on. {WHAT_TO_DO}")
    for part, name, least in (
        (~examples.validation, "texts to train on", LEAST_OF_A_CLASS),
        (examples.validation, "validation texts", 1),
    ):
        counts = {"toxic": int((part & examples.toxic).sum()), "benign": int((part & ~examples.toxic).sum())}
        fewer, most = sorted(counts, key=counts.__getitem__)
        if not counts[most]:
            raise ValueError(f"There are no {name} among {len(examples.texts)} labelled ones. {WHAT_TO_DO}")
        if not counts[fewer]:
            raise ValueError(f"The {counts[most]} {name} are all {most}. {WHAT_TO_DO}")
        if counts[fewer] < least:
            raise ValueError(f"Only {counts[fewer]} of the {name} is {fewer}, and {least} must be. {WHAT_TO_DO}")


WHAT_TO_DO = (
    "A classifier learns from texts of both classes: choose other labels or methods, or have more statements written "
    "or annotated."
)
