"""Figures that the paper published, to stand beside ours."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """A figure of the paper and its place there; a share is between 0 and 1."""

    value: float
    place: str


MACHINES = frozenset({"alice", "topk"})
"""The methods that the paper's figures are of; to ask for both leaves out only what people wrote."""


def stands_beside(filters: Mapping[str, object], *own: str) -> bool:
    """Whether a figure of the paper may stand beside ours: no filter leaves only part of what it is of.

    ``own`` are the filters that what ours is of is told by anyhow: "group" and "label" for a row of each.
    """
    asked = set(filters) - set(own)
    methods = filters.get("method")
    if isinstance(methods, list) and set(methods) >= MACHINES:
        asked.discard("method")
    return not asked


NOT_BESIDE = "The paper's figures are left out where a filter leaves only part of what they are of."
"""Said where filters are set."""

KAPPA = Published(0.46, "section 4.2")
ALPHA = Published(0.64, "section 4.2")
FULL_AGREEMENT = Published(0.5517, "section 4.2")
MAJORITY_AGREEMENT = Published(0.934, "section 4.2")

HUMAN_WRITTEN = Published(0.905, "section 4.2")
"""Machine-generated statements that most annotators think a human wrote; and of each class."""
HUMAN_WRITTEN_BY_CLASS = {"toxic": Published(0.929, "section 4.2"), "non-toxic": Published(0.902, "section 4.2")}
CLASS_SHARES = {"toxic": Published(0.302, "section 4.2"), "ambiguous": Published(0.04, "section 4.2")}
HATE_SPEECH = Published(0.9456, "section 4.2")
"""Toxic statements that "are also hate speech"; the paper does not say by which answers."""

MENTIONS = {
    "black": (0.87, 0.83), "asian": (0.62, 0.71), "native_american": (0.96, 0.73), "latino": (1.0, 0.72),
    "jewish": (0.60, 0.67), "muslim": (0.96, 0.89), "chinese": (0.73, 0.86), "mexican": (0.84, 0.91),
    "middle_east": (0.81, 0.77), "lgbtq": (0.91, 0.97), "women": (0.97, 0.90), "mental_dis": (0.84, 0.78),
    "physical_dis": (0.86, 0.78),
}  # fmt: skip
"""Table 6: the share of statements that mention the target group, by its slug; of ALICE, of top-k."""
MENTIONS_OF_ALL = (0.84, 0.81)

#: Section 4.3, 125 prompts with both methods: by prompt label and method.
PAIRED_MATCHES = {
    ("toxic", "alice"): Published(0.403, "section 4.3"),
    ("toxic", "topk"): Published(0.677, "section 4.3"),
    ("benign", "alice"): Published(0.921, "section 4.3"),
    ("benign", "topk"): Published(0.952, "section 4.3"),
}
PAIRED_TOXICITY = {
    ("toxic", "alice"): Published(2.97, "section 4.3"),
    ("toxic", "topk"): Published(3.75, "section 4.3"),
}
FOOLING = {("all", "alice"): Published(0.264, "section 4.3"), ("all", "topk"): Published(0.168, "section 4.3")}
"""Statements of section 4.3 that fool HateBERT, by class and method."""

#: Appendix E, statements of the training set: by method, by prompt label and method, by class and method.
LARGE_SCALE_METHODS = {"alice": Published(0.491, "appendix E"), "topk": Published(0.509, "appendix E")}
LARGE_SCALE_MATCHES = {
    ("toxic", "alice"): Published(0.6686, "appendix E"),
    ("toxic", "topk"): Published(0.5791, "appendix E"),
    ("benign", "alice"): Published(0.9321, "appendix E"),
    ("benign", "topk"): Published(0.9001, "appendix E"),
}
LARGE_SCALE_TOXICITY = {
    ("toxic", "alice"): Published(3.64, "Figure 7"),
    ("toxic", "topk"): Published(3.36, "Figure 7"),
    ("benign", "alice"): Published(1.52, "Figure 7"),
    ("benign", "topk"): Published(1.63, "Figure 7"),
}
LARGE_SCALE_FOOLING = {
    ("toxic", "alice"): Published(0.5897, "appendix E"),
    ("toxic", "topk"): Published(0.2688, "appendix E"),
    ("non-toxic", "alice"): Published(0.1551, "appendix E"),
    ("non-toxic", "topk"): Published(0.1135, "appendix E"),
}
LARGE_SCALE_REFERENCES = {
    ("all", "alice"): Published(0.783, "appendix E"),
    ("all", "topk"): Published(0.704, "appendix E"),
}
"""Statements of which at least one annotator said that they refer to the target group."""
