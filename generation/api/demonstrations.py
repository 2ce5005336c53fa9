"""Demonstrations: adding them to sets, editing, retiring."""

from django_filters import filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.response import Response

from generation import demonstrating
from generation.api.fields import Choice, Group, Rows, Text, Username
from generation.api.frame import Conflict, Filters, GroupFilter, Reads, TruthFilter, refusals
from generation.models import Demonstration, Label, Origin

FORBIDDEN = (demonstrating.MayNotFillToxicSet,)
MOST_AT_ONCE = 1000


class DemonstrationSerializer(Rows):
    group = Group(read_only=True)
    created_by = Username()

    class Meta:
        model = Demonstration
        fields = [
            "id", "group", "label", "text", "origin", "created_by", "created_at", "retired_at", "retired_reason",
        ]  # fmt: skip
        read_only_fields = fields


class DemonstrationsToAddSerializer(serializers.Serializer):
    """Sentences for one set; those that it has already are left as they are."""

    group = Group()
    label = Choice(choices=Label.choices)
    texts = serializers.ListField(
        child=Text(max_length=demonstrating.LONGEST_TEXT), min_length=1, max_length=MOST_AT_ONCE
    )


class AddedSerializer(serializers.Serializer):
    """What became of them."""

    new = DemonstrationSerializer(many=True)
    known = serializers.ListField(child=Text(), help_text="Texts that the set had already.")


class TextSerializer(serializers.Serializer):
    text = Text(max_length=demonstrating.LONGEST_TEXT)


class ReasonSerializer(serializers.Serializer):
    reason = Text(max_length=demonstrating.LONGEST_REASON)


class DemonstrationFilters(Filters):
    group = GroupFilter()
    label = filters.ChoiceFilter(choices=Label)
    origin = filters.ChoiceFilter(choices=Origin)
    retired = TruthFilter(field_name="retired_at", lookup_expr="isnull", exclude=True)
    search = filters.CharFilter(field_name="text", lookup_expr="icontains", max_length=200)

    class Meta:
        model = Demonstration
        fields: list[str] = []


class DemonstrationViewSet(Reads):
    """Example sentences that are shown to the language model. **Those of toxic sets hurt.**

    Toxic sets are filled by those with the permission for it alone.
    """

    queryset = Demonstration.objects.select_related("group", "created_by")
    serializer_class = DemonstrationSerializer
    filterset_class = DemonstrationFilters
    needs = {name: ["generation.change_demonstration"] for name in ("retire", "bring_back")}

    @extend_schema(request=DemonstrationsToAddSerializer, responses={201: AddedSerializer})
    def create(self, request) -> Response:
        """Add sentences to a set."""
        asked = DemonstrationsToAddSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        with refusals(forbidden=FORBIDDEN, invalid=(demonstrating.NotADemonstration,)):
            added = demonstrating.add(**asked.validated_data, by=request.user)
        return Response(AddedSerializer(added).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=TextSerializer(partial=True), responses=DemonstrationSerializer)
    def partial_update(self, request, pk=None) -> Response:
        """Change the text; the history keeps the old one."""
        demonstration = self.get_object()
        asked = TextSerializer(data=request.data, partial=True)
        asked.is_valid(raise_exception=True)
        if asked.validated_data:
            errors = {"conflict": (demonstrating.AlreadyInSet,), "invalid": (demonstrating.NotADemonstration,)}
            with refusals(forbidden=FORBIDDEN, **errors):
                demonstration = demonstrating.edit(
                    demonstration_id=demonstration.pk, **asked.validated_data, by=request.user
                )
        return Response(self.get_serializer(demonstration).data)

    @extend_schema(request=ReasonSerializer, responses=DemonstrationSerializer)
    @action(detail=True, methods=["post"])
    def retire(self, request, pk=None) -> Response:
        """Draw no more prompts from it."""
        demonstration = self.get_object()
        asked = ReasonSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        with refusals(invalid=(demonstrating.ReasonMissing,)):
            changed = demonstrating.retire(ids=[demonstration.pk], **asked.validated_data, by=request.user)
        return self._changed(changed, "It was retired before.")

    @extend_schema(request=None, responses=DemonstrationSerializer)
    @action(detail=True, methods=["post"], url_path="bring-back")
    def bring_back(self, request, pk=None) -> Response:
        """Draw prompts from it again."""
        demonstration = self.get_object()
        with refusals(forbidden=FORBIDDEN):
            changed = demonstrating.bring_back(ids=[demonstration.pk], by=request.user)
        return self._changed(changed, "It is not retired.")

    def _changed(self, changed: list[Demonstration], why_not: str) -> Response:
        if not changed:
            raise Conflict(f"Nothing was changed. {why_not}")
        return Response(self.get_serializer(changed[0]).data)
