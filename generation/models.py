"""Everything up to a stored generation: groups, demonstrations, prompts, runs and their chunks."""

import hashlib

from django.conf import settings
from django.db import models
from django.db.models import Count, F, Func, Q, Sum
from django.db.models.functions import MD5, Now
from django.utils import timezone


class Label(models.TextChoices):
    """What a prompt is meant to bring out (paper, 3.1.2)."""

    BENIGN = "benign", "benign"
    TOXIC = "toxic", "toxic"


class Method(models.TextChoices):
    """Who turned what into text: a language model's distribution (paper, 3.2 and 3.3), or a person."""

    TOPK = "topk", "top-k"
    ALICE = "alice", "ALICE"
    WRITTEN = "written", "written by a person"


class RunMethod(models.TextChoices):
    """What a run decodes with: one method, or for a comparison both from the same prompts."""

    TOPK = "topk", "top-k"
    ALICE = "alice", "ALICE"
    PAIRED = "paired", "both, from the same prompts"

    @property
    def methods(self) -> tuple[Method, ...]:
        """Those that write a statement for each place, in the order in which they do."""
        return (Method.TOPK, Method.ALICE) if self is RunMethod.PAIRED else (Method(self.value),)


class Precision(models.TextChoices):
    """What a worker computes in. bfloat16 is faster where the hardware has it, and changes statements."""

    FLOAT32 = "float32", "float32"
    BFLOAT16 = "bfloat16", "bfloat16"


def one_of(field: str, choices: type[models.TextChoices], *, name: str) -> models.CheckConstraint:
    """A constraint that holds ``field`` to its choices for every writer, not only for forms."""
    return models.CheckConstraint(condition=Q(**{f"{field}__in": choices.values}), name=name)


def has_text(field: str, *, name: str) -> models.CheckConstraint:
    """A constraint that ``field`` has at least one character that is not white space."""
    return models.CheckConstraint(condition=Q(**{f"{field}__regex": r"\S"}), name=name)


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


class DemonstrationQuerySet(models.QuerySet):
    def usable(self, group: TargetGroup, label: str) -> "DemonstrationQuerySet":
        """Those that prompts may be drawn from, in an order that does not depend on the database."""
        return self.filter(group=group, label=label, retired_at=None).order_by("text")


class Demonstration(models.Model):
    """An example sentence that is shown to the language model (paper, 3.1.1)."""

    group = models.ForeignKey(TargetGroup, models.PROTECT, related_name="demonstrations")
    label = models.CharField(max_length=10, choices=Label)
    text = models.CharField(max_length=500)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    retired_at = models.DateTimeField(null=True, blank=True, help_text="From then on no prompt is drawn from it.")

    objects = DemonstrationQuerySet.as_manager()

    class Meta:
        ordering = ["group", "label", "text"]
        constraints = [
            models.UniqueConstraint(fields=["group", "label", "text"], name="demonstration_once_a_set"),
            one_of("label", Label, name="demonstration_label_known"),
            has_text("text", name="demonstration_has_text"),
            models.CheckConstraint(
                condition=~Q(text__contains="\n"),
                name="demonstration_on_one_line",
                violation_error_message="A demonstration is one line: a prompt puts each on a line of its own.",
            ),
        ]

    def __str__(self) -> str:
        return self.text


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
        return self.text


class RunState(models.TextChoices):
    QUEUED = "queued", "queued"
    RUNNING = "running", "running"
    PAUSED = "paused", "paused"
    FINISHED = "finished", "finished"
    FAILED = "failed", "failed"
    CANCELLED = "cancelled", "cancelled"


OPEN_STATES = (RunState.QUEUED, RunState.RUNNING)
UNENDED_STATES = (*OPEN_STATES, RunState.PAUSED)
STATES_WITH_A_REASON = (RunState.FAILED, RunState.PAUSED)


class GenerationRunQuerySet(models.QuerySet):
    def open(self) -> "GenerationRunQuerySet":
        return self.filter(state__in=OPEN_STATES)

    def waiting(self) -> "GenerationRunQuerySet":
        """Open runs with a chunk that nobody holds: a worker should be woken for them."""
        return self.open().filter(pk__in=GenerationChunk.objects.free().values("run"))


class GenerationRun(models.Model):
    """An order for statements, and all that is needed to repeat it."""

    state = models.CharField(max_length=10, choices=RunState, default=RunState.QUEUED, editable=False)
    method = models.CharField(max_length=10, choices=RunMethod, default=RunMethod.TOPK)
    parameters = models.JSONField(default=dict, editable=False, help_text="The decoding parameters of each method.")
    language_model = models.CharField(max_length=300)
    classifier = models.CharField(max_length=300, blank=True)
    precision = models.CharField(max_length=10, choices=Precision, default=Precision.FLOAT32)
    environment = models.JSONField(default=dict, editable=False, help_text="Device and versions, as last worked on.")
    seed = models.BigIntegerField()
    failure = models.TextField(blank=True, editable=False)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    started_at = models.DateTimeField(null=True, editable=False)
    ended_at = models.DateTimeField(null=True, editable=False)

    objects = GenerationRunQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        verbose_name = "run"
        constraints = [
            one_of("state", RunState, name="run_state_known"),
            one_of("method", RunMethod, name="run_method_known"),
            one_of("precision", Precision, name="run_precision_known"),
            models.CheckConstraint(
                condition=Q(method=RunMethod.TOPK, classifier="") | (~Q(method=RunMethod.TOPK) & ~Q(classifier="")),
                name="run_has_the_classifier_that_it_needs",
            ),
            models.CheckConstraint(
                condition=Q(state__in=UNENDED_STATES, ended_at=None)
                | (~Q(state__in=UNENDED_STATES) & ~Q(ended_at=None)),
                name="run_ended_when_its_state_says_so",
            ),
            models.CheckConstraint(
                condition=(Q(state__in=STATES_WITH_A_REASON) | Q(failure="")) & ~Q(state=RunState.FAILED, failure=""),
                name="run_failed_with_a_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.pk}"

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_STATES

    @property
    def methods(self) -> tuple[Method, ...]:
        return RunMethod(self.method).methods

    def progress(self) -> dict:
        """How much is wanted, stored and was drawn again, and the rate of decoding.

        Wanted and stored are statements, so each place of a paired run counts twice.
        ``statements_a_second`` is what one worker writes, ``workers`` how many hold a chunk now, and
        ``seconds_left`` what those need, if they go on at this rate. What is not known yet is ``None``.
        """
        totals = self.chunks.aggregate(
            places=Sum("size", default=0),
            drawn_again_empty=Sum("empty", default=0),
            drawn_again_duplicate=Sum("duplicate", default=0),
            drawn_again_copy=Sum("copy", default=0),
            seconds=Sum("decoding_seconds", default=0.0),
            classifier_runs=Sum("classifier_runs", default=0),
            workers=Count("pk", filter=Q(lease_expires_at__gte=timezone.now())),
        )
        wanted = totals.pop("places") * len(self.methods)
        stored = self.generations.count()
        searches = stored / len(self.methods) if Method.ALICE in self.methods else 0
        rate = stored / totals["seconds"] if totals["seconds"] else None
        return {
            **totals,
            "wanted": wanted,
            "stored": stored,
            "percent": 100 * stored // wanted if wanted else 0,
            "classifier_runs_a_statement": totals["classifier_runs"] / searches if searches else None,
            "statements_a_second": rate,
            "seconds_left": (wanted - stored) / (rate * max(1, totals["workers"])) if rate and self.is_open else None,
        }


class GenerationChunkQuerySet(models.QuerySet):
    def unfinished(self) -> "GenerationChunkQuerySet":
        return self.filter(finished_at=None)

    def free(self) -> "GenerationChunkQuerySet":
        """Unfinished and held by nobody, or by somebody whose lease has lapsed."""
        return self.unfinished().filter(Q(lease_expires_at=None) | Q(lease_expires_at__lt=timezone.now()))

    def with_stored(self) -> "GenerationChunkQuerySet":
        return self.annotate(stored=Count("generations"))


class GenerationChunk(models.Model):
    """The part of a run that one worker takes at a time: some statements of one group and label.

    A worker leases it, and stores all of its statements at once. If the worker dies the lease
    lapses and somebody else takes the chunk up again.
    """

    run = models.ForeignKey(GenerationRun, models.CASCADE, related_name="chunks")
    index = models.PositiveIntegerField()
    group = models.ForeignKey(TargetGroup, models.PROTECT)
    label = models.CharField(max_length=10, choices=Label)
    size = models.PositiveSmallIntegerField()
    lease_token = models.UUIDField(null=True)
    lease_expires_at = models.DateTimeField(null=True)
    leases = models.PositiveSmallIntegerField(default=0, help_text="How often it was taken up.")
    finished_at = models.DateTimeField(null=True)
    decoding_seconds = models.FloatField(default=0)
    empty = models.PositiveIntegerField(default=0, help_text="Outputs drawn again because they were empty.")
    duplicate = models.PositiveIntegerField(default=0, help_text="Outputs drawn again because the run had them.")
    copy = models.PositiveIntegerField(default=0, help_text="Outputs drawn again because they copied their prompt.")
    classifier_runs = models.PositiveIntegerField(default=0, help_text="Texts that the classifier read in searches.")

    objects = GenerationChunkQuerySet.as_manager()

    class Meta:
        ordering = ["run", "index"]
        constraints = [
            models.UniqueConstraint(fields=["run", "index"], name="chunk_once_a_run"),
            models.CheckConstraint(condition=Q(size__gt=0), name="chunk_has_a_size"),
            one_of("label", Label, name="chunk_label_known"),
            models.CheckConstraint(
                condition=Q(lease_token=None, lease_expires_at=None)
                | (~Q(lease_token=None) & ~Q(lease_expires_at=None)),
                name="chunk_lease_has_an_end",
            ),
            models.CheckConstraint(
                condition=Q(finished_at=None) | Q(lease_token=None), name="chunk_finished_is_not_leased"
            ),
        ]
        indexes = [models.Index(fields=["run", "index"], condition=Q(finished_at=None), name="chunk_unfinished")]

    def __str__(self) -> str:
        return f"chunk {self.index} of {self.run}"


class FinishReason(models.TextChoices):
    """Why a generation ended, in the words of completion servers."""

    STOP = "stop", "at a newline"
    LENGTH = "length", "at the token limit"
    NONE_ALLOWED = "none_allowed", "no token was allowed"


def digest(text: str) -> str:
    """What PostgreSQL's MD5 makes of a text: how long texts are found by their index."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


# drawing.duplicate_key in SQL: collation "C" lowers A to Z only, in every database.
TEXT_DIGEST = MD5(Func("text", template='LOWER(%(expressions)s COLLATE "C")'))


class GenerationManager(models.Manager):
    """Leaves the n best of a search in the database until they are asked for: they are ten times all the rest."""

    def get_queryset(self) -> models.QuerySet:
        return super().get_queryset().defer("hypotheses")


class Generation(models.Model):
    """A statement that a language model wrote. Once it is in a HIT its text never changes."""

    run = models.ForeignKey(GenerationRun, models.PROTECT, null=True, blank=True, related_name="generations")
    chunk = models.ForeignKey(GenerationChunk, models.PROTECT, null=True, blank=True, related_name="generations")
    position = models.PositiveSmallIntegerField(null=True, blank=True, help_text="Its place in the chunk.")
    prompt = models.ForeignKey(Prompt, models.PROTECT, null=True, blank=True, related_name="generations")
    group = models.ForeignKey(TargetGroup, models.PROTECT, related_name="generations")
    label = models.CharField("prompt label", max_length=10, choices=Label)
    method = models.CharField(max_length=10, choices=Method)
    text = models.TextField()
    seed = models.BigIntegerField(null=True, blank=True)
    tokens = models.PositiveSmallIntegerField(null=True, blank=True)
    log_prob = models.FloatField(
        null=True, blank=True, help_text="Sum over its tokens of the language model's log-probability."
    )
    score = models.FloatField(
        null=True, blank=True, help_text="What ALICE ranked it by: the mean over its tokens of the weighted votes."
    )
    toxic_prob = models.FloatField(
        null=True, blank=True, help_text="The run's classifier's probability that the text is toxic."
    )
    hypotheses = models.JSONField(
        default=list, blank=True, editable=False, help_text="ALICE's n best, best first, with both models' votes."
    )
    finish_reason = models.CharField(max_length=20, choices=FinishReason, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = GenerationManager()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["chunk", "position", "method"], name="generation_once_a_place"),
            models.UniqueConstraint(F("run"), TEXT_DIGEST, name="generation_text_once_a_run"),
            models.CheckConstraint(
                condition=Q(run=None, chunk=None, position=None) | (~Q(run=None) & ~Q(chunk=None) & ~Q(position=None)),
                name="generation_of_a_run_has_its_place",
            ),
            one_of("label", Label, name="generation_label_known"),
            one_of("method", Method, name="generation_method_known"),
            has_text("text", name="generation_has_text"),
            models.CheckConstraint(
                condition=Q(toxic_prob=None) | Q(toxic_prob__range=(0, 1)),
                name="generation_toxic_prob_is_a_probability",
            ),
        ]

    def __str__(self) -> str:
        # Not its text: pages show this where they cannot blur it.
        return f"statement {self.pk}"


class ReplayQuerySet(models.QuerySet):
    def waiting(self) -> "ReplayQuerySet":
        """Unfinished and worked on by nobody, or by somebody whose lease has lapsed."""
        free = Q(lease_expires_at=None) | Q(lease_expires_at__lt=timezone.now())
        return self.filter(free, finished_at=None)


class Replay(models.Model):
    """ALICE's search for one statement once more, to be looked at step by step."""

    generation = models.OneToOneField(Generation, models.CASCADE, related_name="replay")
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True)
    requested_at = models.DateTimeField(db_default=Now())
    lease_expires_at = models.DateTimeField(null=True)
    leases = models.PositiveSmallIntegerField(default=0, help_text="How often it was taken up.")
    finished_at = models.DateTimeField(null=True)
    failure = models.TextField(blank=True)
    text = models.TextField(blank=True, help_text="The statement that it found.")
    steps = models.JSONField(default=list, help_text="As generation/search_steps.py packs them.")
    environment = models.JSONField(default=dict, help_text="Device and versions.")

    objects = ReplayQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(finished_at=None) | Q(lease_expires_at=None), name="replay_finished_is_not_leased"
            ),
            models.CheckConstraint(
                condition=Q(finished_at=None, failure="", steps=[])
                | Q(~Q(failure=""), finished_at__isnull=False, steps=[])
                | Q(~Q(steps=[]), finished_at__isnull=False, failure=""),
                name="replay_finished_with_steps_or_a_failure",
            ),
        ]

    def __str__(self) -> str:
        return f"replay of statement {self.generation_id}"

    @property
    def found_the_same(self) -> bool:
        return self.text == self.generation.text
