"""The paper's tables 1, 2, 4, 5 and 7, to stand beside ours. Shares are between 0 and 1, lengths in characters."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Statistics:
    """What table 2 says of some statements."""

    count: int
    mean: float
    sd: float
    implicit: float


#: Table 2 by the slug of the group and the label.
BY_GROUP = {
    ("black", "benign"): Statistics(10_554, 112.32, 40.12, 0.993),
    ("black", "toxic"): Statistics(10_306, 102.88, 40.30, 0.962),
    ("asian", "benign"): Statistics(10_422, 93.02, 38.91, 0.997),
    ("asian", "toxic"): Statistics(10_813, 77.21, 38.96, 0.939),
    ("native_american", "benign"): Statistics(10_251, 92.15, 35.98, 0.998),
    ("native_american", "toxic"): Statistics(10_371, 88.43, 39.82, 0.975),
    ("latino", "benign"): Statistics(10_091, 82.52, 37.80, 0.992),
    ("latino", "toxic"): Statistics(10_295, 93.95, 41.78, 0.968),
    ("jewish", "benign"): Statistics(10_367, 100.17, 40.15, 0.993),
    ("jewish", "toxic"): Statistics(10_563, 97.00, 37.50, 0.958),
    ("muslim", "benign"): Statistics(10_463, 87.46, 38.94, 0.999),
    ("muslim", "toxic"): Statistics(10_579, 76.01, 39.00, 0.980),
    ("chinese", "benign"): Statistics(10_518, 79.78, 40.68, 0.986),
    ("chinese", "toxic"): Statistics(10_489, 76.95, 38.64, 0.973),
    ("mexican", "benign"): Statistics(10_733, 75.43, 42.05, 0.992),
    ("mexican", "toxic"): Statistics(10_511, 88.72, 40.67, 0.950),
    ("middle_east", "benign"): Statistics(10_704, 79.73, 41.11, 0.996),
    ("middle_east", "toxic"): Statistics(10_607, 78.90, 40.46, 0.958),
    ("lgbtq", "benign"): Statistics(11_596, 111.43, 39.06, 0.988),
    ("lgbtq", "toxic"): Statistics(10_695, 96.42, 39.70, 0.962),
    ("women", "benign"): Statistics(11_094, 63.90, 35.07, 0.999),
    ("women", "toxic"): Statistics(10_535, 81.18, 38.54, 0.983),
    ("mental_dis", "benign"): Statistics(10_293, 107.86, 44.88, 0.999),
    ("mental_dis", "toxic"): Statistics(10_372, 90.85, 41.62, 0.998),
    ("physical_dis", "benign"): Statistics(10_319, 89.43, 43.61, 0.999),
    ("physical_dis", "toxic"): Statistics(10_645, 83.95, 40.16, 0.984),
}

#: Table 2 by method.
BY_METHOD = {
    "topk": Statistics(260_012, 88.00, 41.87, 0.981),
    "alice": Statistics(14_174, 102.17, 33.09, 0.997),
}
ALL = Statistics(274_186, 89.60, 41.62, 0.982)

HATE_CLASS = 0.501
"""Table 1: the share of statements with a toxic prompt label."""
TOXIC_BY_COUNT = sum(cell.count for (_, label), cell in BY_GROUP.items() if label == "toxic") / ALL.count
"""The same share as the counts of table 2 have it, which is another one."""

#: Table 5: mean perplexity under GPT-2 by the slug of the group, of ALICE and of top-k; above 500 dropped.
PERPLEXITY = {
    "black": (16.10, 86.88),
    "asian": (17.75, 108.83),
    "native_american": (25.92, 103.87),
    "muslim": (17.16, 84.92),
    "latino": (36.69, 96.68),
    "jewish": (19.37, 96.71),
    "chinese": (33.60, 121.54),
    "lgbtq": (18.15, 87.93),
    "mental_dis": (21.22, 92.21),
    "physical_dis": (30.46, 129.15),
    "mexican": (28.36, 113.62),
    "women": (21.44, 131.52),
    "middle_east": (30.71, 127.95),
}
PERPLEXITY_OF_ALL = (23.54, 105.31)

HATEBERT, ROBERTA = "HateBERT", "RoBERTa"

#: Table 4: AUC by test set and classifier: before, then after training on ALICE, on top-k, on both.
AUC = {
    ("sbf", HATEBERT): (0.60, 0.66, 0.65, 0.71),
    ("ihc", HATEBERT): (0.60, 0.60, 0.61, 0.67),
    ("dynahate", HATEBERT): (0.47, 0.54, 0.59, 0.66),
    ("humanval", HATEBERT): (0.57, 0.93, 0.88, 0.96),
    ("sbf", ROBERTA): (0.65, 0.70, 0.67, 0.70),
    ("ihc", ROBERTA): (0.57, 0.64, 0.63, 0.66),
    ("dynahate", ROBERTA): (0.49, 0.51, 0.50, 0.54),
    ("humanval", ROBERTA): (0.57, 0.87, 0.85, 0.93),
}
#: Table 7: the same by the method of the statements of the test set.
AUC_BY_METHOD = {
    ("alice", HATEBERT): (0.44, 1.00, 0.80, 0.99),
    ("topk", HATEBERT): (0.72, 0.80, 0.95, 0.92),
    ("alice", ROBERTA): (0.59, 0.92, 0.81, 0.93),
    ("topk", ROBERTA): (0.65, 0.77, 0.89, 0.90),
}
