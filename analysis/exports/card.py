"""The dataset card: YAML that ``datasets`` reads, and text that people do.

A card says what was measured and what is not known; it leaves to its editor what only people can judge.
"""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from analysis.exports.columns import Kind
from analysis.exports.facts import Facts, StudyFacts
from analysis.models import HumanvalSet
from annotator.durations import in_words
from annotator.questions import NOT_UNDERSTOOD, QUESTIONS, Question
from annotator.surveying import LEAST

if TYPE_CHECKING:
    from analysis.exports.dataset import Table

SPLIT = "train"
DTYPES = {
    Kind.TEXT: "string",
    Kind.WORD: "string",
    Kind.INTEGER: "int64",
    Kind.NUMBER: "float64",
    Kind.BOOLEAN: "bool",
    Kind.FLAG: "bool",
}
SIZES = (
    (1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
)  # fmt: skip


def card(tables: Sequence["Table"], facts: Facts) -> str:
    """The text of README.md."""
    return "\n".join(["---", *_head(tables, facts), "---", "", *_body(tables, facts)]) + "\n"


# --- The head -------------------------------------------------------------------------------


def _head(tables: Sequence["Table"], facts: Facts) -> Iterator[str]:
    """The metadata. Every string is written as JSON, which is YAML too."""
    yield f"pretty_name: {json.dumps(facts.title, ensure_ascii=False)}"
    yield f"license: {json.dumps(facts.license)}"
    yield "language:\n- en"
    yield "task_categories:\n- text-classification"
    yield "task_ids:\n- hate-speech-detection"
    yield f"size_categories:\n- {_size_category(max(table.rows for table in tables))}"
    yield "annotations_creators:\n- crowdsourced"
    yield "language_creators:\n- machine-generated"
    yield "tags:\n- not-for-all-audiences"
    yield "configs:"
    for number, table in enumerate(tables):
        yield f"- config_name: {table.name}"
        yield from () if number else ("  default: true",)
        yield f"  data_files:\n  - split: {SPLIT}\n    path: {table.path}"
    yield "dataset_info:"
    for table in tables:
        yield f"- config_name: {table.name}\n  features:"
        for column in table.columns:
            yield f"  - name: {json.dumps(column.name)}\n    dtype: {DTYPES[column.kind]}"
        yield f"  splits:\n  - name: {SPLIT}\n    num_bytes: {table.in_memory}\n    num_examples: {table.rows}"
        yield f"  download_size: {table.size}\n  dataset_size: {table.in_memory}"


def _size_category(rows: int) -> str:
    return next((name for limit, name in SIZES if rows < limit), "n>10M")


# --- The body -------------------------------------------------------------------------------


def _body(tables: Sequence["Table"], facts: Facts) -> Iterator[str]:
    yield f"# {facts.title}\n"
    yield (
        "> **Content warning.** Many of these texts are offensive and hurtful, on purpose. "
        "Do not show them to anybody who did not agree to read such text.\n"
    )
    yield f"{facts.description}\n"
    yield (
        f"Made on {facts.made_on} with Humanval, after ToxiGen (Hartvigsen et al., ACL 2022). "
        f"Licence: {facts.license}.\n"
    )
    yield from _tables(tables)
    if facts.propagated:
        yield "## The propagated labels\n"
        yield from (f"{cell(sentence)}\n" for sentence in facts.propagated.sentences)
    if facts.test_set:
        yield from _test_set(facts.test_set)
        yield from (f"{sentence}\n" for sentence in facts.left_out)
    yield "## How it was annotated\n"
    if facts.studies:
        yield from _process(facts)
        yield from _pay(facts.studies)
        yield from _people(facts)
        yield from _agreement(facts.studies)
    else:
        yield (
            "No annotations are in this dataset. Human labels, where there are some, were imported: "
            "who gave them, and how they were paid, is not known.\n"
        )
    yield from _limits(facts)


def _tables(tables: Sequence["Table"]) -> Iterator[str]:
    yield "## What is in it\n"
    yield "```python\nfrom datasets import load_dataset\n"
    yield from (f'{table.name} = load_dataset("this folder", "{table.name}")["{SPLIT}"]' for table in tables)
    yield "```\n"
    for table in tables:
        yield f"### {table.name}\n"
        yield f"{table.export.about} One row is {table.export.a_row}; there are {table.rows:,}.\n"
        yield "| field | type | meaning |\n|---|---|---|"
        yield from (f"| `{column.name}` | {column.kind} | {cell(column.meaning)} |" for column in table.columns)
        yield ""


def _test_set(test_set: HumanvalSet) -> Iterator[str]:
    removed = test_set.removed.count()
    left_out = "1 statement was" if removed == 1 else f"{removed:,} statements were"
    yield "## The test set\n"
    yield (
        f"`humanval` is version {test_set.version} of the test set: {test_set.statements.count():,} statements, with "
        f"their labels frozen on {test_set.frozen_at:%Y-%m-%d}. SHA-256 of its rows: `{test_set.checksum}`.\n"
    )
    yield (
        "`train` and `annotated` have none of its statements, and none that is too similar to one of them: by the "
        f"embeddings of {cell(str(test_set.reader))}, no statement there has a cosine similarity above "
        f"{test_set.threshold:g} with a statement of the test set. {left_out} left out for that. `annotations` and "
        "`wide` hold what people answered about the test set, too: do not train on them.\n"
    )


def _process(facts: Facts) -> Iterator[str]:
    yield (
        "Each annotator read a statement, with its group, and answered nine questions alone. Whoever worked here had "
        "read a content warning before and agreed to take part, and could skip statements and stop at any time.\n"
    )
    yield "| study | statements | annotations | of these labels | annotators | wanted a statement | first | last |"
    yield "|---|---:|---:|---:|---:|---:|---|---|"
    for study in facts.studies:
        fewest, most = study.places
        places = f"{fewest}" if fewest == most else f"{fewest} to {most}"
        name = f"{cell(study.title)} (imported)" if study.imported else cell(study.title)
        yield (
            f"| {name} | {study.statements:,} | {study.annotations:,} | {study.counted:,} | {study.annotators:,} "
            f"| {places} | {study.first:%Y-%m-%d} | {study.last:%Y-%m-%d} |"
        )
    given, counted = (sum(getattr(study, name) for study in facts.studies) for name in ("annotations", "counted"))
    yield (
        f"\nIn all {facts.annotators:,} people gave {given:,} annotations, {counted:,} of which count as labels: those "
        "that were understood, held a place of their statement, were not rejected and were no check of the annotator.\n"
    )
    yield "The questions, as they were asked:\n"
    yield from (f"{question.number}. {_asked(question)}" for question in QUESTIONS)
    yield f"\nInstead, one could say “{NOT_UNDERSTOOD}”; such annotations make no label.\n"


def _asked(question: Question) -> str:
    answers = (
        f"1 ({question.ends[0]}) to 5 ({question.ends[1]})"
        if question.ends
        else "; ".join(option.label for option in question.options)
    )
    return f"**{question.paper_name}** {question.wording} ({answers})"


def _pay(studies: Sequence[StudyFacts]) -> Iterator[str]:
    yield "## What it paid\n"
    paid_here = [study for study in studies if not study.imported]
    for study in paid_here:
        wage = study.wage
        measured = (
            f"the median time was {in_words(wage.median)} (n = {wage.n:,}, the newest)"
            if wage.measured
            else f"the expected time was {in_words(wage.expected)} (n = {wage.n}, too few to measure it)"
        )
        yield (
            f"- *{cell(study.title)}*: ${wage.reward} a statement, {measured}: ${wage.rate} an hour. "
            f"The wage floor was ${wage.floor} an hour."
        )
    if len(paid_here) < len(studies):
        yield "- Of imported studies it is not known: the work was done and paid elsewhere."
    yield ""


def _people(facts: Facts) -> Iterator[str]:
    report = facts.survey
    yield "## Who annotated\n"
    if report.answered is None:
        yield (
            f"Fewer than {LEAST} of the people who agreed to take part answered the optional survey: "
            "nothing is told of them.\n"
        )
        return
    yield (
        f"{report.answered:,} of {report.workers:,} people who agreed to take part in this installation answered an "
        "optional survey. A number is about five people or more; what is not counted is named without a number.\n"
    )
    for part in report.questions:
        counted = ", ".join(f"{row.label} {row.count:,}" for row in part.counted) or "nothing can be told"
        left = f" (not counted: {', '.join(part.not_counted)})" if part.not_counted else ""
        yield f"- {part.question.wording} {counted}{left}."
    yield ""


def _agreement(studies: Sequence[StudyFacts]) -> Iterator[str]:
    yield "## How far annotators agree\n"
    yield (
        "On the toxicity class: non-toxic, ambiguous or toxic, by the larger of HARMFULIFAI and HARMFULIFHUMAN, of all "
        "counted annotations of a study. Intervals: 95 %, by a bootstrap over statements; of the shares Wilson's.\n"
    )
    yield "| study | figure | value | 95 % interval | statements (n) | ratings |\n|---|---|---|---|---:|---:|"
    for study in studies:
        for row in study.rates:
            figure, interval = row.figure, row.interval
            value = f"{figure.value:.3f}" if figure.value is not None else f"undefined: {cell(figure.reason)}"
            between = f"{interval.low:.3f} to {interval.high:.3f}" if interval else "–"
            yield (
                f"| {cell(study.title)} | {figure.name.value} | {value} | {between} "
                f"| {figure.n_statements:,} | {figure.n_ratings:,} |"
            )
    yield ""


def _limits(facts: Facts) -> Iterator[str]:
    yield "## Personal data\n"
    yield f"{PERSONAL_DATA}\n"
    yield "## Limits\n"
    yield from (f"- {limit}" for limit in LIMITS)
    yield "\n## Citation\n"
    yield f"```\n{citation(facts)}\n```"


PERSONAL_DATA = (
    "Annotators appear as salted hashes: the same person has the same hash, and nobody without the salt can tell who "
    "that is. What they said about themselves is kept apart from their answers and told above only in numbers. The "
    "statements were written by language models; they can repeat what people wrote on the web."
)
LIMITS = (
    "A label is what few people at one time made of a statement. Others, and members of the group it is about, may "
    "judge otherwise.",
    "The statements are what models write after prompts about a group: implicit hate and harmless talk in English, not "
    "a sample of what people write.",
    "A prompt's label is not a statement's: toxic prompts bring out harmless text, and the other way round.",
    "The texts are meant for building and testing detectors, and can be misused to teach a model to write such text.",
)


def citation(facts: Facts) -> str:
    """How to cite the dataset, until its editors say it better."""
    key = "".join(filter(str.isalnum, facts.title.lower())) or "dataset"
    return f"@misc{{{key}{facts.made_on.year}, title = {{{facts.title}}}, year = {{{facts.made_on.year}}}}}"


def cell(text: str) -> str:
    """A text for a cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")
