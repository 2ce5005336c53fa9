"""Runs: orders for statements, their cells, and the chunks that workers take."""

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.db.models import Count, F, OuterRef, Q, Subquery, Sum, Value
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from generation.models.choices import Label, Method, Precision, RunMethod, nobody_has_it, one_of
from generation.models.groups import TargetGroup


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
CHUNKS_LOOKED_AT = 200  # more than ever are in hand at once, and so few that a page may ask for them
END_OF_CHUNKS = 2**31 - 1
LATELY = timedelta(minutes=5)


class GenerationRunQuerySet(models.QuerySet):
    def open(self) -> "GenerationRunQuerySet":
        return self.filter(state__in=OPEN_STATES)

    def waiting(self) -> "GenerationRunQuerySet":
        """Open runs with a chunk that nobody holds: a worker should be woken for them."""
        return self.open().filter(pk__in=GenerationChunk.objects.free().values("run"))

    def with_counts(self) -> "GenerationRunQuerySet":
        """Each with the ``stored`` statements and the ``places`` of its cells."""
        cells = GenerationCell.objects.filter(run=OuterRef("pk")).order_by().values("run")
        sums = {name: Subquery(cells.annotate(total=Sum(name)).values("total")) for name in ("stored", "places")}
        return self.annotate(**sums)

    def never_counted(self) -> "GenerationRunQuerySet":
        """Ended runs whose near-duplicates nobody has counted yet."""
        uncounted = GenerationCell.objects.filter(near_duplicate=None).values("run")
        return self.exclude(state__in=UNENDED_STATES).filter(pk__in=uncounted)


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
    repeats = models.ForeignKey(
        "self", models.PROTECT, null=True, editable=False, help_text="The run whose seed, parameters and sets it has."
    )
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
        """How much is wanted, stored and was drawn again, and the rate of decoding; from few rows.

        Wanted and stored are statements, so each place of a paired run counts twice.
        ``statements_a_second`` is what one worker writes, ``statements_a_minute`` what all together wrote in
        the last minutes, ``workers`` how many hold a chunk now, and ``seconds_left`` what those need, if they
        go on at this rate. What is not known yet is ``None``.
        """
        totals = self.cells.aggregate(
            places=Sum("places", default=0),
            stored=Sum("stored", default=0),
            drawn_again_empty=Sum("empty", default=0),
            drawn_again_duplicate=Sum("duplicate", default=0),
            drawn_again_copy=Sum("copy", default=0),
            near_duplicates=Sum("near_duplicate"),
            seconds=Sum("decoding_seconds", default=0.0),
            classifier_runs=Sum("classifier_runs", default=0),
        )
        totals |= self._pace() if self.is_open else {"workers": 0, "statements_a_minute": None}
        wanted = totals.pop("places") * len(self.methods)
        stored = totals["stored"]
        searches = stored / len(self.methods) if Method.ALICE in self.methods else 0
        rate = stored / totals["seconds"] if totals["seconds"] else None
        return {
            **totals,
            "wanted": wanted,
            "percent": 100 * stored // wanted if wanted else 0,
            "classifier_runs_a_statement": totals["classifier_runs"] / searches if searches else None,
            "statements_a_second": rate,
            "seconds_left": (wanted - stored) / (rate * max(1, totals["workers"])) if rate and self.is_open else None,
        }

    def _pace(self) -> dict:
        """How many workers hold a chunk now, and what was stored a minute lately; looks at chunks in hand alone."""
        now = timezone.now()
        # Chunks are taken up in order: those in hand are the first of the unfinished.
        front = self.chunks.unfinished().order_by("index")[:CHUNKS_LOOKED_AT]
        leases = list(front.values_list("lease_expires_at", flat=True))
        lately = [chunk for chunk in self.last_finished_chunks() if chunk.finished_at > now - LATELY]
        since = max(
            now - LATELY,
            self.started_at or now - LATELY,
            min(chunk.finished_at for chunk in lately) if len(lately) == CHUNKS_LOOKED_AT else now - LATELY,
        )
        minutes = max((now - since).total_seconds(), 1) / 60
        written = sum(chunk.size for chunk in lately) * len(self.methods)
        return {
            "workers": sum(1 for end in leases if end and end >= now),
            "statements_a_minute": written / minutes if written else None,
        }

    def last_finished_chunks(self) -> "list[GenerationChunk]":
        """The finished ones among the chunks before the first that nobody has in hand, the last finished first."""
        free = self.chunks.unfinished().filter(lease_token=None).order_by("index").values("index")[:1]
        beyond = Coalesce(Subquery(free), Value(END_OF_CHUNKS))
        near = self.chunks.annotate(beyond=beyond).filter(index__lt=F("beyond")).order_by("-index")[:CHUNKS_LOOKED_AT]
        return sorted((chunk for chunk in near if chunk.finished_at), key=lambda chunk: chunk.finished_at, reverse=True)


class GenerationCell(models.Model):
    """What a run writes of one group and label: how much, from what, and how far it has come.

    The demonstrations are those of the moment the run was started, so that a set may change meanwhile and
    a run can be repeated. The counts are added up as chunks are stored.
    """

    run = models.ForeignKey(GenerationRun, models.CASCADE, related_name="cells", db_index=False)
    group = models.ForeignKey(TargetGroup, models.PROTECT, db_index=False)
    label = models.CharField(max_length=10, choices=Label)
    places = models.PositiveIntegerField(help_text="Prompts that are decoded: each method writes so many statements.")
    demonstrations = models.JSONField(default=list, help_text="The texts that prompts are drawn from.")
    naming_words = models.CharField(max_length=300, blank=True, help_text="The group's, which ALICE may use.")
    stored = models.PositiveIntegerField(default=0, help_text="Statements written, of all methods together.")
    decoding_seconds = models.FloatField(default=0)
    empty = models.PositiveIntegerField(default=0, help_text="Outputs drawn again because they were empty.")
    duplicate = models.PositiveIntegerField(default=0, help_text="Outputs drawn again because the run had them.")
    copy = models.PositiveIntegerField(default=0, help_text="Outputs drawn again because they copied their prompt.")
    near_duplicate = models.PositiveIntegerField(
        null=True, help_text="Statements that say nearly what an earlier one of the run says."
    )
    classifier_runs = models.PositiveIntegerField(default=0, help_text="Texts that the classifier read in searches.")

    class Meta:
        ordering = ["run", "group", "label"]
        constraints = [
            models.UniqueConstraint(fields=["run", "group", "label"], name="cell_once_a_run"),
            models.CheckConstraint(condition=Q(places__gt=0), name="cell_has_places"),
            one_of("label", Label, name="cell_label_known"),
        ]

    def __str__(self) -> str:
        return f"{self.label} {self.group} of {self.run}"

    @property
    def is_frozen(self) -> bool:
        """Whether its demonstrations are known; of runs begun before they were kept, they are not."""
        return bool(self.demonstrations)


class GenerationChunkQuerySet(models.QuerySet):
    def unfinished(self) -> "GenerationChunkQuerySet":
        return self.filter(finished_at=None)

    def free(self) -> "GenerationChunkQuerySet":
        """Unfinished and held by nobody, or by somebody whose lease has lapsed."""
        return self.unfinished().filter(nobody_has_it())

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
