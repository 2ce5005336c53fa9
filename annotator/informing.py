"""What somebody reads before they agree, and at the end."""

from django.db.models import OuterRef, Subquery
from django.utils.safestring import SafeString
from django.utils.text import get_text_list

from annotator.models import HIT, ConsentForm
from annotator.rendering import markdown_to_html
from generation.models import TargetGroup

SECTIONS = {
    "purpose": "Purpose",
    "risks": "Risks and care",
    "pay": "Pay",
    "contact": "Contact",
    "withdrawal": "Withdrawal",
}
DEBRIEF = """\
{statements} were written by a computer program. They are not facts, and nobody meant them.
Judgements by people show where software that looks for hateful language is wrong, and make it better.

If something that you read stays with you, talk to somebody about it. The help lines are there for that, too.
"""


def consent_texts(form: ConsentForm) -> dict:
    """The warning with the groups, and those of the sections that say something, for the page that shows them."""
    return {
        "consent_form": form,
        "warning": markdown_to_html(form.warning),
        "groups": get_text_list([group.words for group in groups_of_statements()], "and"),
        "sections": [
            (name, heading, markdown_to_html(text))
            for name, heading in SECTIONS.items()
            if (text := getattr(form, name).strip())
        ],
    }


def groups_of_statements() -> list[TargetGroup]:
    """The groups that statements in HITs are about; all, as long as there are no HITs."""
    # The first HIT of each, so that the database stops there and does not read them all.
    first_hit = HIT.objects.filter(generation__group=OuterRef("pk")).values("pk")[:1]
    in_hits = TargetGroup.objects.annotate(first_hit=Subquery(first_hit)).filter(first_hit__isnull=False)
    return list(in_hits) or list(TargetGroup.objects.all())


def debrief(form: ConsentForm | None, *, has_judged: bool) -> SafeString:
    """What the form says at the end, or if it says nothing, words of ours."""
    statements = "The statements that you judged" if has_judged else "The statements in these studies"
    return markdown_to_html((form.debrief.strip() if form else "") or DEBRIEF.format(statements=statements))
