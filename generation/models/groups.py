"""Groups, and what language models are shown about them: demonstrations and prompts."""

from django.conf import settings
from django.db import models
from django.db.models import Count, F, OuterRef, Q, Subquery
from django.db.models.functions import MD5, Cast, Now, NullIf
from simple_history.models import HistoricalRecords

from generation.models.choices import Label, has_text, one_of


class TargetGroup(models.Model):
    """One of the groups that statements are about (paper, table 2); slugs as in the release."""

    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=100, help_text="As tables show it: “Native American”.")
    words = models.CharField(
        "words for the annotator", max_length=200, help_text="As the task page shows it: “Native American people”."
    )
    naming_words = models.CharField(
        "words that name it",
        max_length=300,
        blank=True,
        help_text="Separated by blanks. ALICE may use them though they stand in the prompt.",
    )
    position = models.PositiveSmallIntegerField(default=100, help_text="Its place in tables.")

    class Meta:
        ordering = ["position", "slug"]

    def __str__(self) -> str:
        return self.name

    @property
    def all_naming_words(self) -> list[str]:
        """The words that name it, and its name."""
        return [*self.naming_words.split(), self.name]


class Origin(models.TextChoices):
    """Where a demonstration comes from."""

    WRITTEN = "written", "written here"
    IMPORTED = "imported", "imported"
    PROMOTED = "promoted", "promoted from a response"


class DemonstrationQuerySet(models.QuerySet):
    def usable(self, group: TargetGroup, label: str) -> "DemonstrationQuerySet":
        """Those that prompts may be drawn from, in an order that does not depend on the database."""
        return self.filter(group=group, label=label, retired_at=None).order_by("text")

    def with_yield(self) -> "DemonstrationQuerySet":
        """Each with what came of the prompts it was in (paper, 3.1.2).

        ``tried`` counts its trials and ``responses`` what was written in them; ``promoted_share`` and
        ``naming_share`` are the parts of these that were promoted and that name the group, ``None`` where
        there are none.
        """
        responses = "trials__responses"
        return self.annotate(
            tried=Count("trials", distinct=True),
            responses=Count(responses),
            promoted_share=_share(Q(trials__responses__verdict="promoted"), of=responses),
            naming_share=_share(Q(trials__responses__mentions_group=True), of=responses),
        )

    def with_who(self) -> "DemonstrationQuerySet":
        """Each with the names of those who added and retired it, from the history; ``None`` for the command line."""
        own = Demonstration.history.filter(id=OuterRef("pk"))
        added = own.filter(history_type="+").order_by("history_id")
        retired = own.filter(retired_at=OuterRef("retired_at")).order_by("history_id")
        name = "history_user__username"
        return self.annotate(added_by=Subquery(added.values(name)[:1]), retired_by=Subquery(retired.values(name)[:1]))


def _share(condition: Q, *, of: str) -> Cast:
    """The part of joined rows that meet a condition; ``None`` of no rows."""
    return Cast(Count(of, filter=condition), models.FloatField()) / NullIf(Count(of), 0)


class Demonstration(models.Model):
    """An example sentence that is shown to the language model (paper, 3.1.1)."""

    group = models.ForeignKey(TargetGroup, models.PROTECT, related_name="demonstrations")
    label = models.CharField(max_length=10, choices=Label)
    text = models.CharField(max_length=500)
    origin = models.CharField(max_length=10, choices=Origin, default=Origin.WRITTEN, editable=False)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    retired_at = models.DateTimeField(null=True, blank=True, help_text="From then on no prompt is drawn from it.")
    retired_reason = models.CharField(
        "why it was retired", max_length=200, blank=True, help_text="Why it is a bad example, for whoever looks later."
    )

    objects = DemonstrationQuerySet.as_manager()
    history = HistoricalRecords()

    class Meta:
        ordering = ["group", "label", "text"]
        permissions = [("fill_toxic_set", "Can fill toxic sets of demonstrations")]
        constraints = [
            models.UniqueConstraint(fields=["group", "label", "text"], name="demonstration_once_a_set"),
            one_of("label", Label, name="demonstration_label_known"),
            one_of("origin", Origin, name="demonstration_origin_known"),
            models.CheckConstraint(
                condition=Q(retired_reason="") | Q(retired_at__isnull=False),
                name="demonstration_retired_if_it_says_why",
            ),
            has_text("text", name="demonstration_has_text"),
            models.CheckConstraint(
                condition=~Q(text__contains="\n"),
                name="demonstration_on_one_line",
                violation_error_message="A demonstration is one line: a prompt puts each on a line of its own.",
            ),
        ]

    def __str__(self) -> str:
        # Not its text: pages show this where they cannot blur it.
        return f"demonstration {self.pk}"

    @property
    def is_in_use(self) -> bool:
        return self.retired_at is None


class Prompt(models.Model):
    """The text a language model continues: five demonstrations and a hyphen (paper, appendix A)."""

    group = models.ForeignKey(TargetGroup, models.PROTECT, related_name="prompts")
    label = models.CharField(max_length=10, choices=Label)
    text = models.TextField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            # A digest, since a prompt can be longer than an index row may be.
            models.UniqueConstraint(MD5("text"), F("group"), F("label"), name="prompt_once_a_set"),
            one_of("label", Label, name="prompt_label_known"),
        ]

    def __str__(self) -> str:
        # Not its text: pages show this where they cannot blur it.
        return f"prompt {self.pk}"
