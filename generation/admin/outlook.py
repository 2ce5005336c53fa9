"""What the form that starts a run says before anything is started: how many statements, from what, how long."""

from django.urls import reverse

from generation.admin.texts import duration
from generation.estimating import Estimate, estimate
from generation.forms import RunForm

NOT_MEASURED = (
    "How long it takes is not known yet: nothing was measured with this method, these models and this precision. "
    "The run's page tells the time left as soon as its first part is stored."
)


def outlook(form: RunForm) -> dict:
    """What a filled-in form would start. What is wrong in it is left out."""
    form.is_valid()
    methods = getattr(form, "methods", ())
    count = form.cleaned_data.get("count")
    total = len(form.cells) * count * len(methods) if count else 0
    return {
        "sets": len(form.cells),
        "groups": len({cell.group for cell in form.cells}),
        "labels": len({cell.label for cell in form.cells}),
        "count": count,
        "methods": len(methods),
        "total": total,
        "too_small": [
            (cell, reason, reverse("admin:generation_set", args=[cell.group.slug, cell.label]))
            for cell, reason in form.too_small.items()
        ],
        "takes": _takes(form, total) if total else "",
    }


def _takes(form: RunForm, total: int) -> str:
    """How long a run takes, in a sentence; empty while the form is wrong elsewhere than in its sets."""
    if form.errors.keys() - {"groups"}:
        return ""
    order = form.order()
    methods = form.methods
    parameters = {method.value: vars(order.pop(method.value)) for method in methods}
    found = estimate(statements=total, parameters=parameters, **order)
    return in_words(found) if found else NOT_MEASURED


def in_words(found: Estimate) -> str:
    """An estimate as a sentence, with what it was measured on."""
    on = f"measured on {found.run} ({found.statements:,} statement{'s' * (found.statements > 1)}"
    on += f" on {found.device})" if found.device else ")"
    other = ", ".join(f"{_name(name)} {value}" for name, value in found.other_parameters.items())
    return (
        f"About {duration(found.seconds)} with one worker, {on}"
        + (f", which had other parameters: {other}" if other else "")
        + ". Two workers take half as long."
    )


def _name(parameter: str) -> str:
    return str(RunForm.base_fields[parameter].label).lower()
