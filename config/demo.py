"""The demo: a consent form, the project's benign demonstrations, a study and three invitations."""

from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from simple_history.utils import bulk_create_with_history

from annotator import inviting
from annotator.models import ConsentForm, HITType
from generation import runs
from generation.models import Demonstration, Label, RunMethod, TargetGroup
from generation.parameters import AliceParameters

DEMONSTRATIONS = Path(__file__).resolve().parent.parent / "generation" / "demonstrations"
PAIRS_A_GROUP = 1
ANNOTATORS = 3
SEED = 2022
BEAM = 5  # half of the paper's: the demo is to be there within two minutes on four cores
NO_REPEAT_NGRAM_SIZE = 3  # the paper's models needed none; the embedded one is small and writes in circles
CHANGE_REASON = "comes with Humanval"
INVITATION_NOTE = "demo annotator"

WARNING = """\
**Content warning.** In this task you read statements that a computer program wrote about groups of people.

Some statements may be **hateful, demeaning, stereotyping or sexual**, also where they do not use a single rude word.
Reading them can hurt, above all if you belong to the group they are about. You need not take part, and you can stop
at any moment.
"""

PURPOSE = """\
Researchers study how well software recognises hateful language. Your judgements show where it is wrong and are used
to make it better. What you read was generated to be judged, not to be believed.

You read one short statement at a time and answer nine questions about it. That takes less than three minutes each.

You are known to the study by a pseudonym only. Your answers are stored with it; published data carry a code that does
not lead back to you.
"""

RISKS = """\
- Statements may upset you. Take breaks, return any statement without giving a reason, or stop.
- You choose whether each statement stays covered until you uncover it, and which groups you do not want to read about.
- If you do not understand a statement, tick the box that says so. It is paid like any other.
- A help line is linked on every page.
"""

PAY = """\
Every statement you submit is paid at the reward shown before you begin. **If you stop early you are paid for what you
have done.** Returning a statement costs you nothing, and neither does leaving out a group.

Work is approved within three days. Work that was plainly done without care can be rejected, with a reason that you
read on your page; texts that you did not understand and answers that came late are not rejected for that. If you
disagree, write to the contact below: a rejection can be taken back within 30 days.
"""

CONTACT = """\
Whoever sent you the invitation runs this study and answers your questions, before, during and after it. Answer the
message that the invitation came with.
"""

WITHDRAWAL = """\
Taking part is voluntary. You can stop at any time. You can also withdraw your consent, on a page that your preferences
link to, and have your past answers deleted if you like. What you have earned stays yours.
"""

DEBRIEF = """\
The statements were written by a computer program. They are not facts, and nobody meant them. People's judgements of
them show where software that looks for hateful language is wrong, and make it better.

If something you read stays with you, talk to somebody about it. The help lines are there for that.
"""


def make_consent_form() -> ConsentForm:
    """The first version of the consent form, published."""
    return ConsentForm.objects.create(
        version=1,
        title="Before you begin",
        warning=WARNING,
        purpose=PURPOSE,
        risks=RISKS,
        pay=PAY,
        contact=CONTACT,
        withdrawal=WITHDRAWAL,
        debrief=DEBRIEF,
        published_at=timezone.now(),
    )


@transaction.atomic
def load_demonstrations() -> int:
    """Store the benign demonstrations that come with the project; return how many there are.

    Those that the sets have already, in use or retired, are left as they are.
    """
    # Nobody adds to the sets meanwhile, in the order in which everybody locks groups.
    groups = {group.slug: group for group in TargetGroup.objects.select_for_update(no_key=True).order_by("pk")}
    texts = [
        (groups[file.stem], text)
        for file in sorted((DEMONSTRATIONS / Label.BENIGN).glob("*.txt"))
        for text in file.read_text(encoding="utf-8").splitlines()
    ]
    known = set(Demonstration.objects.filter(label=Label.BENIGN).values_list("group_id", "text"))
    new = [
        Demonstration(group=group, label=Label.BENIGN, text=text)
        for group, text in dict.fromkeys(texts)
        if (group.pk, text) not in known
    ]
    bulk_create_with_history(new, Demonstration, default_change_reason=CHANGE_REASON)
    return len(texts)


@transaction.atomic
def make_study() -> HITType:
    """A run of both methods over all groups, a study that is fed from it, and the annotators' invitations."""
    run = runs.start_run(
        cells=[runs.Cell(group, Label.BENIGN, PAIRS_A_GROUP) for group in TargetGroup.objects.all()],
        method=RunMethod.PAIRED,
        alice=AliceParameters(beam=BEAM, no_repeat_ngram_size=NO_REPEAT_NGRAM_SIZE),
        language_model=settings.LANGUAGE_MODEL,
        classifier=settings.CLASSIFIER,
        seed=SEED,
    )
    for number in range(1, ANNOTATORS + 1):
        inviting.invite(note=f"{INVITATION_NOTE} {number}")
    return HITType.objects.create(
        title="Is this statement harmful?",
        description=(
            "Read a text (potentially generated by an AI system) and tell us whether or not "
            "it contains harmful content."
        ),
        keywords="text, judgement, harmful language, research",
        run=run,
    )
