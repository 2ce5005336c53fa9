"""Our agreement figures against the packages krippendorff and statsmodels on the same ratings.

10,000 statements with three ratings each by raters from a pool of 500, as a crowd leaves them:
a wide matrix that is nearly all gaps. Fleiss' kappa has the same ratings without gaps.
"""

import krippendorff
import numpy as np
from statsmodels.stats import inter_rater

from analysis.agreement import fleiss_kappa, krippendorff_alpha
from benchmarks.figure import best_seconds, report

STATEMENTS, POOL, RATERS, CLASSES = 10_000, 500, 3, 3
GOAL = 5
TOLERANCE = 1e-12


def ratings(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The ratings as a (statements, pool) matrix with gaps, and pushed together (statements, 3)."""
    truth = random.integers(CLASSES, size=(STATEMENTS, 1))
    noise = random.integers(CLASSES, size=(STATEMENTS, RATERS))
    full = np.where(random.random((STATEMENTS, RATERS)) < 0.7, truth, noise).astype(float)
    sparse = np.full((STATEMENTS, POOL), np.nan)
    raters = random.random((STATEMENTS, POOL)).argpartition(RATERS, axis=1)[:, :RATERS]
    np.put_along_axis(sparse, raters, full, axis=1)
    return sparse, full


def compare(name: str, ours, theirs) -> None:
    difference = abs(ours() - theirs())
    ratio = best_seconds(theirs) / best_seconds(ours)
    goal = f">= {GOAL} and equal to {TOLERANCE:g}"
    report(name, ratio, unit="times as fast", goal=goal, ok=ratio >= GOAL and difference <= TOLERANCE)


def main() -> None:
    sparse, full = ratings(np.random.default_rng(0))
    for level in ("nominal", "ordinal", "interval"):
        compare(
            f"krippendorff_alpha_{level}_against_krippendorff",
            lambda level=level: krippendorff_alpha(sparse, level=level),
            lambda level=level: krippendorff.alpha(reliability_data=sparse.T, level_of_measurement=level),
        )
    compare(
        "fleiss_kappa_against_statsmodels",
        lambda: fleiss_kappa(full),
        lambda: inter_rater.fleiss_kappa(inter_rater.aggregate_raters(full)[0]),
    )


if __name__ == "__main__":
    main()
