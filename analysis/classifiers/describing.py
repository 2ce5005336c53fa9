"""What is told of a training that ended: its model card, and with what it was carried out."""

import platform
from importlib.metadata import version

from django.db.models import Count as Number
from django.db.models import Q
from django.utils import timezone

from analysis.humanval.sets import THRESHOLD
from analysis.models import HumanvalSet, TrainedClassifier, TrainingPart
from analysis.training.card import Count, Facts, card
from analysis.training.outcomes import Trained
from generation.models import Label, Method
from generation.readings import ENCODER
from generation.working import humanval_version

EMBEDDED_LICENSE = "apache-2.0"


def card_of(
    classifier: TrainedClassifier, trained: Trained, *, base_revision: str, environment: dict, notes: list[str]
) -> str:
    """The model card of a classifier, with what its row does not have yet."""
    facts = Facts(
        name=classifier.name,
        kind=classifier.get_kind_display(),
        base=classifier.base,
        base_revision=base_revision,
        labels=classifier.get_labels_display(),
        methods=classifier.get_methods_display(),
        counts=_counts(classifier),
        left_out=classifier.data["left_out"],
        data_digest=classifier.data_digest,
        seed=classifier.seed,
        precision=classifier.precision,
        parameters=classifier.parameters,
        before=trained.before,
        after=trained.after,
        steps=trained.steps,
        best_step=trained.best_step,
        made_on=f"{timezone.now():%-d %B %Y}",
        notes=notes,
        environment={name: str(value) for name, value in environment.items()},
        set_apart=_set_apart(classifier),
        base_license=EMBEDDED_LICENSE if classifier.base == ENCODER else "",
    )
    return card(facts)


def environment_on(device: str) -> dict[str, str | int]:
    """What else than data, seed and parameters decides the weights."""
    import torch  # never in the web process

    return {
        "humanval": humanval_version(),
        "device": device,
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("torch", "transformers")},
    }


def _set_apart(classifier: TrainedClassifier) -> str:
    """What was kept out of it. The training ends without a card if anything of a set that is drawn was learned."""
    sets = HumanvalSet.objects.drawn().filter(version__in=classifier.data["humanval"]).order_by("version")
    if not sets:
        return "No HUMANVAL test set was drawn when the statements were chosen, so none was kept out for one."
    above = [f"above {min(each.threshold, THRESHOLD):g} with one of {each}" for each in sets]
    return (
        f"It was not trained here on statements of {', '.join(map(str, sets))}, nor on any whose embedding has a "
        f"cosine similarity {', or '.join(above)}."
    )


def _counts(classifier: TrainedClassifier) -> list[Count]:
    columns = ("generation__method", "is_toxic", "generation__group__name")
    of_part = {str(part): Number("pk", filter=Q(part=part)) for part in TrainingPart}
    rows = classifier.statements.order_by(*columns).values_list(*columns).annotate(**of_part)
    return [
        Count(Method(method).label, Label.TOXIC.value if is_toxic else Label.BENIGN.value, group, train, validation)
        for method, is_toxic, group, train, validation in rows
    ]
