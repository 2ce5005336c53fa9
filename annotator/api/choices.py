"""Choosing the statements of a study, as the API says it: filters, how many, the seed, and what comes of it."""

from datetime import timedelta
from decimal import Decimal

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from annotator import choosing, wages
from annotator.models import StatementDraw
from generation.api.fields import Choice, Dollars, Group, Number, Object, Row, Rows, Text, Time, Truth, Whole
from generation.models import GenerationRun, Label, Method

SAMPLE = 10
METHODS = [(method.value, method.label) for method in choosing.METHODS]


class DrawOrderSerializer(serializers.Serializer):
    """A random draw of so many statements from each cell: group × label × method. What is left out filters nothing."""

    a_cell = Whole(min_value=1, max_value=choosing.MOST_A_CELL, help_text="How many of each group, label and method.")
    seed = Whole(
        min_value=0,
        max_value=choosing.SEED_LIMIT - 1,
        help_text="The same one draws the same statements as long as none is stored or taken.",
    )
    groups = Group(many=True, required=False)
    labels = serializers.ListField(child=Choice(choices=Label.choices), required=False, max_length=len(Label.values))
    methods = serializers.ListField(
        child=Choice(choices=METHODS),
        required=False,
        max_length=len(Method.values),
    )
    run = Row(queryset=GenerationRun.objects.all(), required=False, allow_null=True)
    imported = Truth(default=False, help_text="Only those that no run wrote.")
    toxic_from = Number(min_value=0, max_value=1, required=False, allow_null=True)
    toxic_to = Number(min_value=0, max_value=1, required=False, allow_null=True)
    is_new = Truth(
        default=True, help_text="Only those that no study has yet, and that no imported human label is about."
    )
    fingerprint = Text(
        max_length=64,
        required=False,
        help_text="Of the preview that was looked at: other statements are not published.",
    )

    def order(self) -> dict:
        """What the acts are called with."""
        asked = self.validated_data
        run = asked.get("run")
        filters = choosing.Filters(
            groups=tuple(group.slug for group in asked.get("groups", [])),
            labels=tuple(asked.get("labels", [])),
            methods=tuple(asked.get("methods", [])),
            run=run.pk if run else None,
            imported=asked["imported"],
            toxic_from=asked.get("toxic_from"),
            toxic_to=asked.get("toxic_to"),
            is_new=asked["is_new"],
        )
        return {"filters": filters, "a_cell": asked["a_cell"], "seed": asked["seed"]}


class DrawnCellSerializer(serializers.Serializer):
    group = Group(read_only=True)
    label = Choice(choices=Label.choices, read_only=True)
    method = Choice(choices=Method.choices, read_only=True)
    wanted = Whole(read_only=True)
    found = Whole(read_only=True)


class SampleSerializer(serializers.Serializer):
    id = Whole(read_only=True)
    group = Group(read_only=True)
    label = Choice(choices=Label.choices, read_only=True)
    method = Choice(choices=Method.choices, read_only=True)
    text = Text(read_only=True)


class PreviewSerializer(serializers.Serializer):
    """What publishing a draw would take. **The sample's texts may hurt.**"""

    seed = Whole(source="draw.seed", read_only=True)
    fingerprint = Text(source="draw.fingerprint", read_only=True)
    statements = serializers.SerializerMethodField()
    assignments = serializers.SerializerMethodField(help_text="Judgements, if all places are filled.")
    cost = serializers.SerializerMethodField(help_text="US dollars, if all places are filled and approved.")
    work = serializers.SerializerMethodField(help_text="All annotators' time together.")
    cells = DrawnCellSerializer(source="draw.cells", many=True, read_only=True)
    sample = serializers.SerializerMethodField()

    def get_statements(self, preview: dict) -> int:
        return len(preview["draw"].ids)

    def get_assignments(self, preview: dict) -> int:
        return len(preview["draw"].ids) * preview["study"].max_assignments

    @extend_schema_field(Dollars)
    def get_cost(self, preview: dict) -> str:
        return str(Decimal(preview["study"].reward) * self.get_assignments(preview))

    @extend_schema_field(Time)
    def get_work(self, preview: dict) -> str:
        time: timedelta = wages.as_of_now(preview["study"]).time * self.get_assignments(preview)
        return Time().to_representation(time)

    @extend_schema_field(SampleSerializer(many=True))
    def get_sample(self, preview: dict) -> list[dict]:
        return SampleSerializer(preview["draw"].sample(SAMPLE), many=True).data


class DrawnSerializer(Rows):
    """A draw that was published."""

    study = Row(source="hit_type", read_only=True)
    filters = Object(read_only=True)

    class Meta:
        model = StatementDraw
        fields = ["id", "study", "filters", "a_cell", "seed", "found", "made", "made_at"]
        read_only_fields = fields
