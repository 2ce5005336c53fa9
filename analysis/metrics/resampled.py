"""How sure the figures are: intervals over texts, by a bootstrap as ``analysis/bootstrap.py`` has it.

Accuracy and false-positive rate are shares of texts: theirs is Wilson's, which is sound of few texts, and of none or
all of them.

Texts are drawn again with replacement, as often as there are. Those with the same probability, label and group are one
pattern of which it is drawn how often it occurs, so that the order of texts does not matter. An interval holds the
middle 95 % of what comes out.

The calibration error and the spread between groups measure how large several parts are together, and chance makes parts
larger: of a resample they are larger than of the texts it is drawn from, and these have more than all texts like them.
Theirs is the basic interval, twice the figure less the percentiles, which takes that shift off. Where chance alone
would give the figure, as the resamples' parts are as far from the texts' own, it is from 0 to the upper percentile.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analysis.agreement.ratings import BoolArray, FloatArray, IntArray
from analysis.bootstrap import FEWEST, LEVEL, percentiles, times_drawn
from analysis.comparison import share_with_interval
from analysis.metrics.figures import BINS, LEAST, NAN, THRESHOLD, Counts, at_threshold, checked_probs, coded, places

BLOCK = 2_000_000
"""Numbers in the largest array of a block of resamples: 16 MB."""
Interval = tuple[float, float]
NONE: Interval = (NAN, NAN)


def intervals(
    probs: ArrayLike,
    toxic: ArrayLike,
    *,
    groups: Sequence[str] | None = None,
    resamples: int = 1000,
    seed: int = 0,
    threshold: float = THRESHOLD,
    bins: int = BINS,
    least: int = LEAST,
) -> dict[str, Interval]:
    """The 95 % interval of each figure over the texts, by its name; with ``groups`` that of the spread, too.

    It is ``(nan, nan)`` where the figure is undefined. Of what is resampled it is so, too, of fewer than ten texts that
    the figure is about (F1 toxic ones, the AUC either), since their resamples are too alike; and where all resamples
    give the same, since without a width it would claim that other texts must give that, too. With ten, one resample in
    20,000 lacks them: it is left out. The same texts and ``seed`` give the same, in whatever order.

    >>> probs, toxic = [0.1, 0.3, 0.6, 0.2, 0.8, 0.7, 0.4, 0.9] * 5, ([False] * 4 + [True] * 4) * 5
    >>> [round(end, 3) for end in intervals(probs, toxic)["accuracy"]]
    [0.598, 0.858]
    """
    if resamples < 1:
        raise ValueError(f"resamples is {resamples}; give at least 1, better 1000.")
    x, y = checked_probs(probs, toxic)
    names, codes = coded([""] * len(x) if groups is None else groups, len(x))
    benign = np.bincount(codes[~y], minlength=len(names))
    counted = [place for place, name in enumerate(names) if name and benign[place] >= max(1, least)]
    positives = int(np.count_nonzero(y))
    about = {"auc": min(positives, len(y) - positives), "f1": positives, "calibration_error": len(y)}
    about |= {"spread": len(y) if len(counted) > 1 else 0} if groups is not None else {}
    wanted = [name for name, number in about.items() if number >= FEWEST]
    found = dict.fromkeys(about, NONE) | _of_shares(at_threshold(x, y, threshold))
    return found | _resampled(_Patterns.of(x, y, codes, threshold, bins, counted), resamples, seed, wanted)


def _of_shares(counts: Counts) -> dict[str, Interval]:
    right, benign = counts.true_positives + counts.true_negatives, counts.false_positives + counts.true_negatives
    shares = {
        "accuracy": (right, right + counts.false_positives + counts.false_negatives),
        "false_positive_rate": (counts.false_positives, benign),
    }
    return {name: share_with_interval(k, n)[1:] if n else NONE for name, (k, n) in shares.items()}


def _resampled(patterns: "_Patterns", resamples: int, seed: int, wanted: Sequence[str]) -> dict[str, Interval]:
    if not wanted:
        return {}
    batch = max(1, BLOCK // len(patterns.occurrences))
    blocks = times_drawn(patterns.occurrences, resamples, batch, np.random.default_rng(seed))
    drawn = [patterns.figures(weights) for weights in blocks]
    actual = patterns.figures(patterns.occurrences[None].astype(float))
    values = {name: np.concatenate([block[name] for block in drawn]) for name in wanted}
    return {
        name: _of_size(SIZES[name], actual[name], values[name]) if name in SIZES else _of(values[name])
        for name in wanted
    }


@dataclass(frozen=True, eq=False)
class _Patterns:
    """``P`` patterns of texts that no figure tells apart, by rising probability; ``W`` resamples weigh them.

    All figures but the AUC follow from sums over patterns: ``columns``, ``(P, C)``, has what is summed.
    """

    toxic: BoolArray  # (P,)
    occurrences: IntArray  # (P,)
    starts: IntArray  # (distinct probabilities,): the first pattern of each
    columns: FloatArray  # (P, 3 + bins + 2 * groups)
    bins: int

    @classmethod
    def of(
        cls, x: FloatArray, y: BoolArray, codes: IntArray, threshold: float, bins: int, counted: Sequence[int]
    ) -> "_Patterns":
        benign_codes = np.where(np.isin(codes, counted) & ~y, codes, -1)
        rows, occurrences = np.unique(np.column_stack([x, y, benign_codes]), axis=0, return_counts=True)
        prob, toxic, code = rows[:, 0], rows[:, 1] == 1, rows[:, 2]
        taken = prob >= threshold
        in_bin = places(prob, bins)[:, None] == np.arange(bins)
        benign_of = code[:, None] == np.array(counted, dtype=float)
        cells = np.column_stack([taken & toxic, taken != toxic, np.ones(len(rows))])
        columns = [cells, in_bin * (prob - toxic)[:, None], benign_of, benign_of & taken[:, None]]
        starts = np.flatnonzero(np.diff(prob, prepend=-1.0))
        return cls(toxic, occurrences, starts, np.column_stack(columns).astype(float), bins)

    def figures(self, weights: FloatArray) -> dict[str, FloatArray]:
        """Each figure of each resample, ``(W,)``, from how often it has which pattern, ``(W, P)``.

        Of a figure in ``SIZES`` its parts: each bin's ``(W, bins)``, or each group's rate, ``(W, groups)``.
        """
        sums = weights @ self.columns
        found, missed, n = sums[:, :3].T
        gaps = sums[:, 3 : 3 + self.bins]
        benign, wrong = np.split(sums[:, 3 + self.bins :], 2, axis=1)
        return {
            "auc": self._auc(weights),
            "f1": _shares(2 * found, 2 * found + missed),
            "calibration_error": gaps / n[:, None],
            "spread": _shares(wrong, benign),
        }

    def _auc(self, weights: FloatArray) -> FloatArray:
        all_of = np.add.reduceat(weights, self.starts, axis=1)
        toxic = np.add.reduceat(weights * self.toxic, self.starts, axis=1)
        benign = all_of - toxic
        below = np.cumsum(benign, axis=1) - benign / 2  # a tie counts half
        return _shares(np.einsum("wp,wp->w", toxic, below), toxic.sum(axis=1) * benign.sum(axis=1))


def _of(values: FloatArray) -> Interval:
    found = percentiles(values)
    return NONE if isinstance(found, str) else found


def _of_size(size: Callable[[FloatArray], FloatArray], parts: FloatArray, drawn: FloatArray) -> Interval:
    """Of a figure that is the size of ``parts``, ``(1, K)``, by those of the resamples, ``(W, K)``."""
    found = percentiles(size(drawn))
    if isinstance(found, str):
        return NONE
    low, high = found
    figure = float(size(parts)[0])
    if figure <= np.nanquantile(size(drawn - parts), (1 + LEVEL) / 2):
        return 0.0, high
    return max(0.0, 2 * figure - high), max(figure, min(1.0, 2 * figure - low))


def _shares(k: FloatArray, n: FloatArray) -> FloatArray:
    return np.divide(k, n, out=np.full_like(n, NAN), where=n > 0)


def _total(gaps: FloatArray) -> FloatArray:
    return np.asarray(np.abs(gaps).sum(axis=1), dtype=np.float64)


def _range(rates: FloatArray) -> FloatArray:
    return np.asarray(np.ptp(rates, axis=1), dtype=np.float64)


SIZES: dict[str, Callable[[FloatArray], FloatArray]] = {"calibration_error": _total, "spread": _range}
