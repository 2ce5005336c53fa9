"""Studies: setting them up, choosing and publishing statements, watching, stopping and extending."""

from datetime import timedelta
from decimal import Decimal

from django_filters import filters
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.response import Response

from annotator import choosing, publishing, setting_up, stopping, wages, watching
from annotator.api.choices import DrawnSerializer, DrawOrderSerializer, PreviewSerializer
from annotator.api.watch import WatchSerializer
from annotator.models import HITType, Qualification, StatementDraw
from annotator.moving import NothingToExtend
from generation.api.fields import Dollars, Row, Rows, Text, Time, Truth, Whole
from generation.api.frame import DoneSerializer, Filters, Reads, TruthFilter, refusals
from generation.models import GenerationRun

SECOND = timedelta(seconds=1)
MOST_PLACES, MOST_DAYS = 100, 3650
CLOSED = (wages.PayTooLow, publishing.KnownAnswersOnly, publishing.StudyClosed, choosing.CannotPublishDraw)


class WageSerializer(serializers.Serializer):
    """What the study pays an hour, as it stands."""

    rate = Dollars(help_text="US dollars an hour.")
    enough = Truth(help_text="Whether it reaches the wage floor.")
    reward_needed = Dollars(help_text="The smallest reward that reaches the floor.")
    measured = Truth(help_text="Whether the time is the median of what was submitted.")
    n = Whole(help_text="How many submissions there are to measure it by.")
    time = Time(help_text="How long one statement takes.")
    sentence = Text()


class StudySerializer(Rows):
    reward = Dollars(max_digits=6, min_value=Decimal(0), default=Decimal("0.25"), help_text="US dollars a statement.")
    wage_floor = Dollars(max_digits=6, min_value=Decimal(0), default=Decimal("8.00"), help_text="US dollars an hour.")
    expected_time = Time(min_value=SECOND, default=timedelta(seconds=105))
    assignment_duration = Time(min_value=SECOND, default=timedelta(minutes=30))
    auto_approval_delay = Time(min_value=timedelta(0), default=timedelta(days=3))
    lifetime = Time(min_value=SECOND, default=timedelta(days=30))
    break_after = Time(min_value=SECOND, default=timedelta(minutes=20))
    max_assignments = Whole(min_value=1, max_value=100, default=3)
    daily_cap = Whole(min_value=1, max_value=1_000_000, default=50)
    qualifications = Row(
        many=True, required=False, queryset=Qualification.objects.all(), help_text="A worker must have all of them."
    )

    class Meta:
        model = HITType
        fields = [
            "id", "title", "description", "keywords", "reward", "wage_floor", "expected_time", "assignment_duration",
            "auto_approval_delay", "lifetime", "max_assignments", "daily_cap", "break_after", "qualifications", "run",
            "grants", "pass_mark", "imported", "stopped_at", "created_at",
        ]  # fmt: skip
        read_only_fields = ["id", "run", "grants", "pass_mark", "imported", "stopped_at", "created_at"]


class StudyWithFiguresSerializer(StudySerializer):
    wage = serializers.SerializerMethodField()

    class Meta(StudySerializer.Meta):
        fields = [*StudySerializer.Meta.fields, "wage"]

    @extend_schema_field(WageSerializer)
    def get_wage(self, study: HITType) -> dict:
        return WageSerializer(wages.as_of_now(study)).data


class RunToPublishSerializer(serializers.Serializer):
    run = Row(queryset=GenerationRun.objects.all())


class MadeSerializer(serializers.Serializer):
    hits = Whole(help_text="How many HITs it was about.")


class ExtensionSerializer(serializers.Serializer):
    """By how much all HITs of a study are extended: at least one of either."""

    places = Whole(min_value=0, max_value=MOST_PLACES, default=0)
    days = Whole(min_value=0, max_value=MOST_DAYS, default=0)


class StudyFilters(Filters):
    imported = TruthFilter()
    run = filters.ModelChoiceFilter(queryset=GenerationRun.objects.all())
    stopped = TruthFilter(field_name="stopped_at", lookup_expr="isnull", exclude=True)

    class Meta:
        model = HITType
        fields: list[str] = []


CHANGE = ["annotator.change_hittype"]


class StudyViewSet(Reads):
    """Studies, in Mechanical Turk's word HIT types; a single one with its pay and how far it has come."""

    queryset = HITType.objects.prefetch_related("qualifications")
    filterset_class = StudyFilters
    needs = {
        "preview_choice": ["annotator.view_hittype", "generation.view_generation"],
        "publish_choice": [*CHANGE, "generation.view_generation"],
        "publish_run": [*CHANGE, "generation.view_generationrun"],
        "watch": ["annotator.view_hittype", "annotator.view_assignment", "annotator.view_annotation"],
        "stop": CHANGE,
        "resume": CHANGE,
        "extend": CHANGE,
    }

    def get_serializer_class(self):
        return StudySerializer if self.action == "list" else StudyWithFiguresSerializer

    @extend_schema(request=StudySerializer, responses={201: StudyWithFiguresSerializer})
    def create(self, request) -> Response:
        """Set up a study, of which nothing is published yet."""
        asked = StudySerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        study = setting_up.make_study(**asked.validated_data)
        return Response(self.get_serializer(study).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=StudySerializer(partial=True), responses=StudyWithFiguresSerializer)
    def partial_update(self, request, pk=None) -> Response:
        """Change a study; what workers accepted before keeps its reward and its time."""
        asked = StudySerializer(self.get_object(), data=request.data, partial=True)
        asked.is_valid(raise_exception=True)
        with refusals(conflict=CLOSED):
            study = setting_up.change_study(hit_type=asked.instance, **asked.validated_data)
        return Response(self.get_serializer(study).data)

    @extend_schema(request=DrawOrderSerializer, responses=PreviewSerializer, filters=False)
    @action(detail=True, methods=["post"], url_path="choose/preview")
    def preview_choice(self, request, pk=None) -> Response:
        """Draw statements at random and show what publishing them would take. Nothing is stored.

        The same seed draws the same statements as long as none is stored or taken.
        """
        study = self.get_object()
        drawn = choosing.draw(hit_type=study, **self._order())
        return Response(PreviewSerializer({"study": study, "draw": drawn}).data)

    @extend_schema(request=DrawOrderSerializer, responses={201: DrawnSerializer})
    @action(detail=True, methods=["post"], url_path="choose/publish")
    def publish_choice(self, request, pk=None) -> Response:
        """Draw statements at random and make HITs of them."""
        study = self.get_object()
        order = self._order()
        with refusals(conflict=CLOSED):
            kept = choosing.publish_draw(
                hit_type=study, **order, by=request.user, agreed=request.data.get("fingerprint") or None
            )
        return Response(DrawnSerializer(kept).data, status=status.HTTP_201_CREATED)

    @extend_schema(responses=WatchSerializer)
    @action(detail=True, methods=["get"], filter_backends=[])
    def watch(self, request, pk=None) -> Response:
        """How far the study is, who is at work, what it pays, and on what people disagree."""
        return Response(WatchSerializer(watching.watch(self.get_object())).data)

    @extend_schema(responses=DrawnSerializer(many=True), filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def draws(self, request, pk=None) -> Response:
        """How the study's statements were chosen, newest first: the last hundred draws."""
        kept = StatementDraw.objects.filter(hit_type=self.get_object()).order_by("-pk")[:100]
        return Response(DrawnSerializer(kept, many=True).data)

    @extend_schema(request=RunToPublishSerializer, responses=MadeSerializer)
    @action(detail=True, methods=["post"], url_path="publish-run")
    def publish_run(self, request, pk=None) -> Response:
        """Publish all that a run has written, and from now on what it writes."""
        asked = RunToPublishSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        with refusals(conflict=CLOSED):
            made = setting_up.follow_run(hit_type=self.get_object(), **asked.validated_data, by=request.user)
        return Response({"hits": made})

    @extend_schema(request=None, responses=MadeSerializer)
    @action(detail=True, methods=["post"])
    def stop(self, request, pk=None) -> Response:
        """Let nobody accept the study's HITs from now on; work under way may be finished."""
        with refusals(conflict=(*CLOSED, stopping.NothingToStop)):
            ended = stopping.stop(hit_type=self.get_object(), by=request.user)
        return Response({"hits": ended})

    @extend_schema(request=None, responses=MadeSerializer)
    @action(detail=True, methods=["post"])
    def resume(self, request, pk=None) -> Response:
        """Let a stopped study go on."""
        with refusals(conflict=(*CLOSED, stopping.NothingToStop)):
            revived = stopping.go_on(hit_type=self.get_object(), by=request.user)
        return Response({"hits": revived})

    @extend_schema(request=ExtensionSerializer, responses=DoneSerializer)
    @action(detail=True, methods=["post"])
    def extend(self, request, pk=None) -> Response:
        """Add places and days to all HITs of the study."""
        asked = ExtensionSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        with refusals(conflict=CLOSED, invalid=(NothingToExtend,)):
            done = stopping.extend(
                hit_type=self.get_object(),
                places=asked.validated_data["places"],
                lifetime=timedelta(days=asked.validated_data["days"]),
                by=request.user,
            )
        return Response(DoneSerializer(done).data)

    def _order(self) -> dict:
        asked = DrawOrderSerializer(data=self.request.data)
        asked.is_valid(raise_exception=True)
        return asked.order()
