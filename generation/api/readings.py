"""Readings: having statements read by a model, watching that, stopping it."""

from django_filters import filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.response import Response

from generation import readings
from generation.api.fields import Choice, Group, Number, Rows, Text, Whole
from generation.api.frame import Conflict, Filters, Reads, refusals
from generation.models import GenerationRun, Label, Method, Precision, ReaderKind, Reading

MOST_IDS = 100_000


class ReadingSerializer(Rows):
    revision = serializers.SerializerMethodField(help_text="Of the model; null until a worker has loaded it.")

    class Meta:
        model = Reading
        fields = [
            "id", "kind", "model", "precision", "revision", "about", "statements", "read", "device", "failure",
            "created_at", "started_at", "finished_at",
        ]  # fmt: skip
        read_only_fields = fields

    def get_revision(self, reading: Reading) -> str | None:
        return reading.reader and reading.reader.revision


class ReadingPaceSerializer(serializers.Serializer):
    """How fast it goes; null is what is not known yet."""

    percent = Whole()
    workers = Whole(help_text="How many are at work on it now.")
    statements_a_second = Number(allow_null=True, help_text="Of one worker.")
    seconds_left = Number(allow_null=True)


class ReadingWithProgressSerializer(ReadingSerializer):
    progress = ReadingPaceSerializer(read_only=True)

    class Meta(ReadingSerializer.Meta):
        fields = [*ReadingSerializer.Meta.fields, "progress"]


class ReadingOrderSerializer(serializers.Serializer):
    """Which statements a model reads: those of all the filters, or those with the ids."""

    kind = Choice(choices=ReaderKind.choices)
    model = Text(
        max_length=readings.LONGEST_NAME,
        required=False,
        help_text="Of a classifier trained here its name; a folder or a model id. Left out: the one of the settings.",
    )
    precision = Choice(choices=Precision.choices, default=Precision.FLOAT32)
    groups = serializers.ListField(child=Group(), default=list, max_length=1000, help_text="None: all.")
    labels = serializers.ListField(child=Choice(choices=Label.choices), default=list, max_length=10)
    methods = serializers.ListField(child=Choice(choices=Method.choices), default=list, max_length=10)
    run = serializers.PrimaryKeyRelatedField(
        queryset=GenerationRun.objects.all(), required=False, allow_null=True, default=None
    )
    ids = serializers.ListField(
        child=Whole(min_value=1), default=list, max_length=MOST_IDS, help_text="Of statements; of those the filters."
    )


class ReadingFilters(Filters):
    kind = filters.ChoiceFilter(choices=ReaderKind)

    class Meta:
        model = Reading
        fields: list[str] = []


class ReadingViewSet(Reads):
    """Readings, newest first; a single one with how fast it goes."""

    queryset = Reading.objects.select_related("reader")
    filterset_class = ReadingFilters
    needs = {"stop": ["generation.add_reading"]}

    def get_serializer_class(self):
        return ReadingSerializer if self.action == "list" else ReadingWithProgressSerializer

    @extend_schema(
        request=ReadingOrderSerializer,
        responses={200: ReadingWithProgressSerializer, 201: ReadingWithProgressSerializer},
    )
    def create(self, request) -> Response:
        """Have statements read that the model has not read yet; 200: the reading that has them before it already."""
        order = ReadingOrderSerializer(data=request.data)
        order.is_valid(raise_exception=True)
        asked = order.validated_data
        statements, about = readings.chosen_statements(
            **{name: asked[name] for name in ("groups", "labels", "methods", "run")}
        )
        if asked["ids"]:
            statements, about = statements.filter(pk__in=asked["ids"]), f"{len(asked['ids'])} by their ids, of {about}"
        with refusals(conflict=(readings.NothingToRead,), invalid=(ValueError,)):
            reading = readings.start_reading(
                kind=asked["kind"],
                model=asked.get("model") or readings.default_model(asked["kind"]),
                precision=asked["precision"],
                generation_ids=statements,
                about=about,
                by=request.user,
            )
        new = status.HTTP_200_OK if reading.was_under_way else status.HTTP_201_CREATED
        return Response(self.get_serializer(reading).data, status=new)

    @extend_schema(request=None, responses=ReadingWithProgressSerializer)
    @action(detail=True, methods=["post"])
    def stop(self, request, pk=None) -> Response:
        """End a reading; what was read is kept."""
        reading = self.get_object()
        stopped = readings.stop_reading(reading=reading, by=request.user)
        reading.refresh_from_db()
        if not stopped:
            raise Conflict(f"Reading {reading.pk} has ended already.")
        return Response(self.get_serializer(reading).data)
