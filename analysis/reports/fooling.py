"""Which statements fool a classifier: toxic ones that it takes for harmless, harmless ones that it takes for toxic."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pandas as pd

from analysis.labels import TOXICITY_CLASSES
from analysis.reports.by_method import SHARE, Parts, compared, sides
from analysis.reports.frame import Section
from analysis.reports.paper import Published
from analysis.reports.validated import ALL, Part, Shown, Validated, notes_on
from generation.models import Generation, Method, ReaderKind, TextReader, ToxicityScore

THRESHOLD = 0.5
"""From this probability on, a classifier takes a statement for toxic."""
TITLE = "Fooling classifiers"
FOOLED = (
    f"A classifier is fooled by a statement that people find toxic and to which it gives a probability below "
    f"{THRESHOLD}, and by one that they find non-toxic and to which it gives {THRESHOLD} or more."
)
NOT_SCORED = (
    "No classifier has scored these statements. Have them read: under Generate, Readings, start one of the kind "
    f"“{ReaderKind.CLASSIFIER.label}”. It runs on a worker and is stored; this report is then worked out anew."
)
OF_PAPER = "The paper's figures are of HateBERT."
PARTS = {ALL: "", "toxic": "that are toxic", "non-toxic": "that are non-toxic"}


@dataclass(frozen=True)
class Scores:
    """A classifier's probabilities of toxic by statement; ``whose`` says where they come from."""

    key: str
    name: str
    whose: str
    values: pd.Series


def sections(validated: Validated, published: Mapping[tuple[str, str], Published]) -> tuple[Section, ...]:
    """A section for each classifier that scored some of the statements; one that says what to do if none has."""
    if validated.missing:
        return validated.sections([Part("fooling", TITLE, _nothing)])
    parts = [
        Part(scores.key, f"Fooling {scores.name}", lambda given, scores=scores: _section(given, scores, published))
        for scores in scores_of(validated.statements)
    ]
    return validated.sections(parts or [Part("fooling", TITLE, _nothing)])


def scores_of(statements: pd.DataFrame) -> list[Scores]:
    """What each classifier made of these statements: those of readings first, then those of runs and imported files."""
    ids = statements.index.tolist()
    read = ToxicityScore.objects.filter(generation__in=ids).values_list("reader", "generation", "toxic_prob")
    readers = TextReader.objects.filter(kind=ReaderKind.CLASSIFIER).order_by("-used_at", "-pk")
    by_reader = _parted(read)
    stored = Generation.objects.filter(pk__in=ids).exclude(toxic_prob=None).exclude(method=Method.WRITTEN).order_by()
    by_classifier = _parted(stored.values_list("run__classifier", "pk", "toxic_prob"))
    found = [
        Scores(f"fooling-reader-{reader.pk}", str(reader), f"Scores of the reading by {reader}.", by_reader[reader.pk])
        for reader in readers
        if reader.pk in by_reader
    ]
    for number, name in enumerate(sorted(name for name in by_classifier if name), start=1):
        whose = f"Scores of {name} as the runs that wrote the statements stored them: ALICE searched against it."
        found.append(Scores(f"fooling-run-{number}", f"{name} (in runs)", whose, by_classifier[name]))
    if None in by_classifier:
        whose = "Scores that were imported with the statements (roberta_prediction of the file)."
        found.append(Scores("fooling-imported", "the imported file's classifier", whose, by_classifier[None]))
    return found


def _parted(rows) -> dict[object, pd.Series]:
    """Rows of a key, a statement's id and a probability as a series by key."""
    parted: dict[object, dict[int, float]] = {}
    for key, statement, probability in rows:
        parted.setdefault(key, {})[statement] = probability
    return {key: pd.Series(of, dtype=float) for key, of in parted.items()}


def _section(validated: Validated, scores: Scores, published: Mapping[tuple[str, str], Published]) -> Shown:
    statements = validated.statements
    probability = scores.values.reindex(statements.index)
    names = statements["toxicity_class"].map(dict(enumerate(TOXICITY_CLASSES)))
    known = statements.assign(name=names, takes_for_toxic=probability >= THRESHOLD)[
        probability.notna() & names.isin(["toxic", "non-toxic"])
    ]
    known["fooled"] = (known["takes_for_toxic"] != (known["name"] == "toxic")).astype(float)
    of = {part: known if part == ALL else known[known["name"] == part] for part in PARTS}
    values = {part: sides(table, "fooled") for part, table in of.items()}
    parts = Parts("class", "Class by people", values, PARTS, n={"statements": len(known)})
    scored = probability.notna()

    def says(told: Iterator[str]) -> str:
        of_all, of_toxic, of_harmless = told
        return (
            f"These shares of the statements fool {scores.name}: {of_all}. Of the toxic ones: {of_toxic}. Of "
            f"the non-toxic ones: {of_harmless}."
        )

    return compared(
        parts,
        SHARE,
        says=says,
        published=published,
        notes=(
            FOOLED,
            scores.whose,
            *([OF_PAPER] if published else []),
            *notes_on(
                {
                    "is ambiguous": int((scored & (names == "ambiguous")).sum()),
                    "has no class: a score of the annotators is missing": int((scored & names.isna()).sum()),
                    "has no score by this classifier": int((~scored).sum()),
                }
            ),
        ),
    )


def _nothing(_: Validated) -> Shown:
    return Shown(FOOLED, missing=NOT_SCORED)
