"""HITs: statements that are judged."""

from django.db.models import QuerySet
from django_filters import filters
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from annotator.models import HIT, HITStatus, HITType
from generation.api.fields import Choice, Group, Row, Rows, Text, Whole
from generation.api.frame import Filters, GroupFilter, Reads, TruthFilter


class HITSerializer(Rows):
    study = Row(source="hit_type", read_only=True)
    statement = Row(source="generation", read_only=True)
    text = Text(source="generation.text", read_only=True)
    group = Group(source="generation.group", read_only=True)
    label = Text(source="prompt_label", read_only=True)
    state = serializers.SerializerMethodField()
    places = Whole(source="max_assignments", read_only=True)

    class Meta:
        model = HIT
        fields = [
            "id", "study", "statement", "text", "group", "label", "state", "places", "held_places", "open_assignments",
            "is_check", "created_at", "expires_at", "reviewing_at", "disposed_at",
        ]  # fmt: skip
        read_only_fields = fields

    @extend_schema_field(Choice(choices=HITStatus.choices))
    def get_state(self, hit: HIT) -> str:
        return hit.status.value


class HITFilters(Filters):
    study = filters.ModelChoiceFilter(field_name="hit_type", queryset=HITType.objects.all())
    group = GroupFilter(field_name="generation__group")
    state = filters.ChoiceFilter(choices=HITStatus, method="in_state")
    is_check = TruthFilter()

    class Meta:
        model = HIT
        fields: list[str] = []

    @extend_schema_field({"type": "string", "enum": HITStatus.values})
    def in_state(self, hits: QuerySet[HIT], name: str, state: str) -> QuerySet[HIT]:
        return hits.in_state(HITStatus(state))


class HITViewSet(Reads):
    """Statements in studies, with their places. **Their texts may hurt.**"""

    queryset = HIT.objects.select_related("generation__group")
    serializer_class = HITSerializer
    filterset_class = HITFilters
