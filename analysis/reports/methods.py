"""The report ``methods``: what ALICE changes, on the same prompts and on all statements (paper, section 4.3)."""

from collections.abc import Mapping

import pandas as pd

from analysis.reports import fooling, paper
from analysis.reports.by_method import METHODS, PAIRED_MEAN_SHARE, PAIRED_SHARE, PAIRED_TOXICITY, Parts
from analysis.reports.frame import Report
from analysis.reports.matching import (
    LABEL_AND_METHOD,
    MEANT,
    by_label,
    matches,
    matches_of_all,
    toxicity,
    toxicity_of_all,
    with_matches,
)
from analysis.reports.validated import Part, Shown, Validated, counted, read

NAME, TITLE = "methods", "ALICE against top-k"
MEANS_OF_PROMPTS = (
    "Where a method has several judged statements of a prompt, their mean stands for that prompt: each prompt counts "
    "once a method."
)
NO_PAIRS = (
    "No prompt has judged statements of both methods. Start a run with both methods from the same prompts under "
    "Generate, and have its statements judged; or import statements of both methods with their prompts."
)
PAIRED = "Each prompt for which both methods have a judged statement is a pair: what lies in the prompt is the same."


def make(filters: Mapping) -> Report:
    """The report over what the filters leave."""
    validated = read(filters)
    fooled = fooling.sections(validated, validated.of_paper(paper.FOOLING, "method"))
    return Report(NAME, TITLE, (*validated.sections(PARTS), *fooled))


def _paired_matches(validated: Validated) -> Shown:
    parts, notes = _pairs(validated, "matches")
    if not notes:
        return Shown(PAIRED, missing=NO_PAIRS)
    are_yes_or_no = all(side.isin((0, 1)).all() for of in parts.values.values() for side in of.values())
    measure = PAIRED_SHARE if are_yes_or_no else PAIRED_MEAN_SHARE  # one for the whole table
    return matches(parts, measure, published=validated.of_paper(paper.PAIRED_MATCHES, *LABEL_AND_METHOD), notes=notes)


def _paired_toxicity(validated: Validated) -> Shown:
    parts, notes = _pairs(validated, "toxicity")
    if not notes:
        return Shown(PAIRED, missing=NO_PAIRS)
    notes = (*notes, "The paper gives a p below 0.001 for its toxic prompts, and does not name its test.")
    published = validated.of_paper(paper.PAIRED_TOXICITY, *LABEL_AND_METHOD)
    return toxicity(parts, PAIRED_TOXICITY, published=published, notes=notes)


def _pairs(validated: Validated, column: str) -> tuple[Parts, tuple[str, ...]]:
    """The mean of each prompt and method, of prompts that have both, and what to say of it; without pairs, nothing."""
    known = with_matches(validated.statements)
    of_prompts = known[known["prompt"].notna() & known["method"].isin([*METHODS])]
    by_prompt = of_prompts.groupby(["label", "prompt", "method"])[column]
    means = by_prompt.mean().unstack("method").reindex(columns=[*METHODS])
    pairs = means.dropna()
    values = {
        label: {method: pairs.loc[pairs.index.get_level_values("label") == label, method] for method in METHODS}
        for label in MEANT
    }
    sizes = by_prompt.size().unstack("method").reindex(columns=[*METHODS]).loc[pairs.index]
    parts = by_label(
        values,
        things="prompts with judged statements of both methods: those",
        n_label="Prompts (n)",
        n={"prompts": len(pairs), "statements": int(sizes.to_numpy().sum())},
    )
    return parts, _on_pairs(pairs, len(means) - len(pairs), sizes, len(known) - len(of_prompts))


def _on_pairs(pairs: pd.DataFrame, lone: int, sizes: pd.DataFrame, without_prompt: int) -> tuple[str, ...]:
    if pairs.empty:
        return ()
    several = int((sizes > 1).any(axis=1).sum())
    notes = [PAIRED, f"There are {counted(len(pairs), 'such prompt')}. {MEANS_OF_PROMPTS}"]
    if several:
        notes.append(f"{counted(several, 'prompt has', 'prompts have')} several statements of a method.")
    if lone:
        notes.append(f"Left out: {counted(lone, 'prompt')} with judged statements of one method only.")
    if without_prompt:
        notes.append(f"Left out: {counted(without_prompt, 'statement')} without a prompt here.")
    return tuple(notes)


PARTS = (
    Part("paired-matches", "Same prompts: statements that match their prompt label", _paired_matches),
    Part("paired-toxicity", "Same prompts: mean toxicity", _paired_toxicity),
    Part("matches", "All statements: those that match their prompt label", matches_of_all),
    Part("toxicity", "All statements: mean toxicity", toxicity_of_all),
)
