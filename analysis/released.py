"""The columns and words of the released ToxiGen files and of Mechanical Turk's result files, in one place.

Imports read by these tables and exports write by them, so that what is exported can be imported again. The column
names of the tables ``train``, ``annotated`` and ``annotations`` are those of the public dataset; the meaning of the
numbered answer columns follows the order of the options on the annotation page (ToxiGen, figure 6). The release does
not document the words of the three drop-down answers: the first word of each entry is written, all are read.
"""

from collections.abc import Mapping

# --- The tables of statements ------------------------------------------------------------------

TRAIN = ("prompt", "generation", "generation_method", "group", "prompt_label", "roberta_prediction")

ANNOTATED = (
    "text", "target_group", "factual?", "ingroup_effect", "lewd", "framing", "predicted_group", "stereotyping",
    "intent", "toxicity_ai", "toxicity_human", "predicted_author", "label", "actual_method",
)  # fmt: skip

#: Our label by the words for it, lower-cased; ``train`` writes 0 and 1, ``annotated`` neutral and hate.
LABELS: Mapping[str, str] = {
    "neutral": "benign", "benign": "benign", "0": "benign", "hate": "toxic", "toxic": "toxic", "1": "toxic",
}  # fmt: skip
TRAIN_LABELS = {"benign": "0", "toxic": "1"}
ANNOTATED_LABELS = {"benign": "neutral", "toxic": "hate"}

#: Our method by the words for it, lower-cased. CBS, constrained beam search, is ALICE.
METHODS: Mapping[str, str] = {
    "alice": "alice", "cbs": "alice", "topk": "topk", "top-k": "topk", "written": "written",
}  # fmt: skip
TRAIN_METHODS = {"alice": "ALICE", "topk": "TopK", "written": "written"}
ANNOTATED_METHODS = {"alice": "CBS", "topk": "TopK", "written": "written"}

DISAGREEMENT = "disagreement"
"""What ``annotated`` says where no answer has more than half of the annotators."""

#: The words of ``annotated`` for an answer that most annotators gave: by our question, by our answer.
ANNOTATED_WORDS: Mapping[str, Mapping[str, str]] = {
    "fact_or_opinion": {
        "factual": "factual",
        "opinion": "opinion",
        "both": "both factual and opinion",
        "neither": "neither factual nor opinion",
    },
    "lewd": {
        "yes": "contains lewd content",
        "maybe": "might contain lewd content",
        "no": "doesn't contain lewd content",
    },
    "pos_stereo": {
        "yes": "uses positive stereotyping",
        "maybe": "maybe uses positive stereotyping",
        "no": "doesn't use positive stereotyping",
    },
    "group_framing": {
        "moral_judgement": "moral",
        "blames_for_cause": "cause",
        "suggests_solution": "solution",
        "positive_stereotyping": "positive stereotyping",
        "personal_experience": "personal experience",
        "other": "other",
        "none": "",
    },
    "human_or_ai": {"human": "human", "ai": "ai"},
}

#: The sentences of ``predicted_group``, by our answer to which_group; ``{group}`` is what it is about.
PREDICTED_GROUP = {
    "directly": "the text directly references {group}",
    "indirectly": "the text indirectly references {group}",
    "none_or_unclear": "it is unclear who is referenced",
    "other_groups": "the text references {group}",
}

# --- One row an annotation ----------------------------------------------------------------------

INPUTS = (
    "Input.prompt", "Input.text", "Input.time", "Input.generation_method", "Input.prompt_label", "Input.target_group",
    "Input.binary_prompt_label",
)  # fmt: skip

#: Questions answered in columns of true and false, one an option: the column's stem, our answers from .1 on.
ONE_HOT: Mapping[str, tuple[str, tuple[str | int, ...]]] = {
    "human_or_ai": ("Answer.writer", ("human", "ai")),
    "harmful_if_ai": ("Answer.toAI", (1, 2, 3, 4, 5)),
    "harmful_if_human": ("Answer.toPER", (1, 2, 3, 4, 5)),
    "pos_stereo": ("Answer.stereo", ("yes", "maybe", "no")),
    "harmful_intent": ("Answer.intent", (1, 2, 3, 4, 5)),
    "lewd": ("Answer.lewd", ("yes", "maybe", "no")),
}

#: Questions answered by a word: the column, and our answer by the words for it, lower-cased.
SELECTS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "which_group": (
        "Answer.refTarget",
        {
            "direct": "directly", "directly": "directly", "yes, directly": "directly",
            "indirect": "indirectly", "indirectly": "indirectly", "yes, indirectly": "indirectly",
            "unclear": "none_or_unclear", "none_or_unclear": "none_or_unclear", "none": "none_or_unclear",
            "no": "none_or_unclear", "no reference": "none_or_unclear",
            "other": "other_groups", "other_groups": "other_groups", "others": "other_groups",
        },
    ),
    "group_framing": (
        "Answer.framingQ",
        {
            "moral": "moral_judgement", "moral_judgement": "moral_judgement", "moral judgement": "moral_judgement",
            "moral judgment": "moral_judgement",
            "cause": "blames_for_cause", "blames_for_cause": "blames_for_cause",
            "solution": "suggests_solution", "suggests_solution": "suggests_solution",
            "positive stereotyping": "positive_stereotyping", "positive_stereotyping": "positive_stereotyping",
            "positive stereotype": "positive_stereotyping", "stereotype": "positive_stereotyping",
            "personal experience": "personal_experience", "personal_experience": "personal_experience",
            "experience": "personal_experience",
            "other": "other", "none": "none", "": "none",
        },
    ),
    "fact_or_opinion": (
        "Answer.factSelect",
        {
            "factual": "factual", "fact": "factual", "yes": "factual",
            "opinion": "opinion", "both": "both", "both factual and opinion": "both",
            "neither": "neither", "neither factual nor opinion": "neither", "no": "neither",
        },
    ),
}  # fmt: skip

FREE_TEXTS = {"other_groups": "Answer.stateGroup", "other_framing": "Answer.stateFrame"}

NOT_UNDERSTOOD = "Answer.notUnderstood.on"
"""Ours: the release has no column for the box that says so."""

#: Columns that are kept as they are, since no question of the paper asks for them.
KEPT = ("Answer.inGroup.on", "Answer.ingroup.1", "Answer.ingroup.2", "Answer.ingroup.3")

#: What annotators said of themselves: not stored, since Humanval keeps such answers apart from judgements.
ABOUT_THE_ANNOTATOR = (
    "Answer.annotatorAge", "Answer.annotatorGender", "Answer.annotatorMinority", "Answer.annotatorPolitics.1",
    "Answer.annotatorPolitics.2", "Answer.annotatorPolitics.3", "Answer.annotatorPolitics.4",
    "Answer.annotatorPolitics.5", "Answer.annotatorRace",
)  # fmt: skip

WORKER = "HashedWorkerId"

MTURK = (
    "HITId", "HITTypeId", "Title", "Description", "Keywords", "Reward", "CreationTime", "MaxAssignments",
    "RequesterAnnotation", "AssignmentDurationInSeconds", "AutoApprovalDelayInSeconds", "Expiration",
    "NumberOfSimilarHITs", "LifetimeInSeconds", "AssignmentId", "WorkerId", "AssignmentStatus", "AcceptTime",
    "SubmitTime", "AutoApprovalTime", "ApprovalTime", "RejectionTime", "RequesterFeedback", "WorkTimeInSeconds",
    "LifetimeApprovalRate", "Last30DaysApprovalRate", "Last7DaysApprovalRate",
)  # fmt: skip
"""The fixed columns of a batch's results; ``Input.`` and ``Answer.`` columns follow."""


def one_hot_columns() -> dict[str, tuple[str, str | int]]:
    """Each numbered column with the question it belongs to and the answer it stands for.

    >>> one_hot_columns()["Answer.stereo.3"]
    ('pos_stereo', 'no')
    """
    return {
        f"{stem}.{number}": (key, value)
        for key, (stem, values) in ONE_HOT.items()
        for number, value in enumerate(values, start=1)
    }


def select_words(key: str) -> dict[str, str]:
    """The word that is written for each answer of a drop-down question: the first of its words.

    >>> select_words("which_group")["directly"]
    'direct'
    """
    written: dict[str, str] = {}
    for word, answer in SELECTS[key][1].items():
        written.setdefault(answer, word)
    return written


def answer_columns() -> tuple[str, ...]:
    """Every ``Answer.`` column that an export writes, in the order of the page."""
    numbered = one_hot_columns()
    return (
        NOT_UNDERSTOOD,
        *numbered,
        *(column for column, _ in SELECTS.values()),
        *FREE_TEXTS.values(),
        *KEPT,
    )
