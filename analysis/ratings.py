"""From stored annotations to the ratings that the statistics take."""

import numpy as np

from analysis.agreement import Ratings
from analysis.labels import TOXICITY_CLASSES, toxicity, toxicity_class
from annotator.models import Annotation, HITType


def toxicity_classes(hit_type: HITType) -> Ratings:
    """The toxicity class of every counted annotation of a study: who put which HIT's statement into which class."""
    rows = (
        Annotation.objects.counted()
        .filter(assignment__hit__hit_type=hit_type)
        .order_by("assignment__hit_id", "pk")
        .values_list("assignment__hit_id", "assignment__worker_id", "harmful_if_ai", "harmful_if_human")
    )
    hits, workers, if_ai, if_human = np.array(list(rows), dtype=np.int64).reshape(-1, 4).T
    codes = range(len(TOXICITY_CLASSES))
    return Ratings.from_long(hits, workers, toxicity_class(toxicity(if_ai, if_human)), categories=codes)
