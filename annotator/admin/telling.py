"""What is said after an act on many rows: how many it changed, how many it left and why."""

from django.contrib import messages
from django.http import HttpRequest

from annotator.reviewing import Done


def tell(request: HttpRequest, changed: str, done: Done) -> None:
    """Say what was done; ``changed`` is the word for those that were changed."""
    if done.changed:
        messages.success(request, f"{changed}: {len(done.changed)}.")
    for remark, number in done.remarks.items():
        messages.info(request, f"{number} of them {is_or_are(number)} {remark}.")
    for reason, number in done.left.items():
        left = "left as it is" if number == 1 else "left as they are"
        messages.warning(request, f"{number} {left}: {reason}.")


def is_or_are(number: int) -> str:
    return "is" if number == 1 else "are"
