"""Assignments: annotators' work, its answers, and what is decided on it."""

from django_filters import filters
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from annotator import questions, reviewing
from annotator.evidence import evidence_on
from annotator.models import Annotation, Assignment, AssignmentStatus, HITType
from annotator.questions import QUESTIONS
from generation.api.fields import Row, Rows, Text, Username
from generation.api.frame import DoneSerializer, Filters, IdsSerializer, Reads, refusals

LONGEST_REASON = 1000
SCALE, YES_MAYBE_NO = (
    [(option.value, option.label) for option in options] for options in (questions.SCALE, questions.YES_MAYBE_NO)
)


class AnnotationSerializer(Rows):
    """The nine answers; null is one that was not given, as of a text that was not understood."""

    class Meta:
        model = Annotation
        fields = [
            "id",
            "not_understood",
            *(question.key for question in QUESTIONS),
            *(question.free_text.key for question in QUESTIONS if question.free_text),
            "created_at",
        ]
        read_only_fields = fields


class AssignmentSerializer(Rows):
    study = Row(source="hit.hit_type", read_only=True)
    statement = Row(source="hit.generation", read_only=True)
    worker = Text(source="worker.pseudonym", read_only=True)
    decided_by = Username()

    class Meta:
        model = Assignment
        fields = [
            "id", "study", "hit", "statement", "worker", "status", "holds_place", "reward", "accepted_at", "deadline",
            "submitted_at", "given_back_at", "decided_at", "decided_by", "rejection_reason", "answers_deleted_at",
        ]  # fmt: skip
        read_only_fields = fields


class FlagSerializer(serializers.Serializer):
    """What asks for a second look, and why. It decides nothing."""

    flag = Text()
    words = Text()


class AssignmentWithAnswersSerializer(AssignmentSerializer):
    """With the statement's text, the answers, and what asks for a second look."""

    text = Text(source="hit.generation.text", read_only=True)
    annotation = serializers.SerializerMethodField()
    flags = serializers.SerializerMethodField()

    class Meta(AssignmentSerializer.Meta):
        fields = [*AssignmentSerializer.Meta.fields, "text", "annotation", "flags"]

    @extend_schema_field(AnnotationSerializer(allow_null=True))
    def get_annotation(self, assignment: Assignment) -> dict | None:
        annotation = getattr(assignment, "annotation", None)  # none before the submit, or deleted by the worker's wish
        return AnnotationSerializer(annotation).data if annotation else None

    @extend_schema_field(FlagSerializer(many=True))
    def get_flags(self, assignment: Assignment) -> list[dict]:
        return [
            {"flag": str(raised.flag), "words": raised.words}
            for evidence in evidence_on([assignment.pk])
            for raised in evidence.flags
        ]


class RejectionSerializer(IdsSerializer):
    reason = Text(max_length=LONGEST_REASON, help_text="The workers read it.")


class AssignmentFilters(Filters):
    status = filters.MultipleChoiceFilter(choices=AssignmentStatus)
    study = filters.ModelChoiceFilter(field_name="hit__hit_type", queryset=HITType.objects.all())
    worker = filters.CharFilter(field_name="worker__pseudonym", lookup_expr="iexact", max_length=20)

    class Meta:
        model = Assignment
        fields: list[str] = []


class AssignmentViewSet(Reads):
    """Annotators' work; a single piece with its answers. Workers appear by their pseudonyms."""

    queryset = Assignment.objects.select_related("hit", "worker", "decided_by").defer("draft")
    filterset_class = AssignmentFilters
    needs = {
        "retrieve": ["annotator.view_assignment", "annotator.view_annotation"],
        **{name: ["annotator.change_assignment"] for name in ("approve", "reject", "approve_after_all", "reopen")},
    }

    def get_queryset(self):
        if self.action == "retrieve":
            return super().get_queryset().select_related("hit__generation", "annotation")
        return super().get_queryset()

    def get_serializer_class(self):
        return AssignmentWithAnswersSerializer if self.action == "retrieve" else AssignmentSerializer

    @extend_schema(request=IdsSerializer, responses=DoneSerializer, filters=False)
    @action(detail=False, methods=["post"])
    def approve(self, request) -> Response:
        """Approve submitted work, which is owed from then on."""
        return self._done(reviewing.approve(ids=self._ids(), by=request.user))

    @extend_schema(request=RejectionSerializer, responses=DoneSerializer, filters=False)
    @action(detail=False, methods=["post"])
    def reject(self, request) -> Response:
        """Reject submitted work: it is not paid, its place is free again, and the worker reads the reason."""
        asked = RejectionSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        with refusals(invalid=(reviewing.ReasonMissing,)):
            done = reviewing.reject(**asked.validated_data, by=request.user)
        return self._done(done)

    @extend_schema(request=IdsSerializer, responses=DoneSerializer, filters=False)
    @action(detail=False, methods=["post"], url_path="approve-after-all")
    def approve_after_all(self, request) -> Response:
        """Approve rejected work within 30 days."""
        return self._done(reviewing.approve_after_all(ids=self._ids(), by=request.user))

    @extend_schema(request=IdsSerializer, responses=DoneSerializer, filters=False)
    @action(detail=False, methods=["post"])
    def reopen(self, request) -> Response:
        """Free the places of submitted or approved work, for others: it counts no longer and its pay stays."""
        return self._done(reviewing.reopen(ids=self._ids()))

    def _ids(self) -> list[int]:
        asked = IdsSerializer(data=self.request.data)
        asked.is_valid(raise_exception=True)
        return asked.validated_data["ids"]

    def _done(self, done: reviewing.Done) -> Response:
        return Response(DoneSerializer(done).data)
