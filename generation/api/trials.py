"""Trials: asking for fresh responses to a prompt drawn from a set, and judging these."""

from django_filters import filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.response import Response as Answer

from generation import demonstrating, judging, trials
from generation.api.demonstrations import FORBIDDEN, DemonstrationSerializer
from generation.api.fields import Choice, Group, Object, Rows, Seed, Text, Username, Whole
from generation.api.frame import Filters, GroupFilter, Reads, refusals
from generation.api.runs import TopKSerializer
from generation.models import BadBecause, Label, Response, Trial, Verdict
from generation.parameters import TopKParameters
from generation.prompting import NotEnoughDemonstrations


class ResponseSerializer(Rows):
    class Meta:
        model = Response
        fields = [
            "id", "trial", "position", "text", "tokens", "log_prob", "finish_reason", "mentions_group", "verdict",
            "bad_because", "note", "demonstration", "judged_at",
        ]  # fmt: skip
        read_only_fields = fields


class TrialSerializer(Rows):
    group = Group(read_only=True)
    parameters = Object(read_only=True, help_text="Of top-k.")
    requested_by = Username()

    class Meta:
        model = Trial
        fields = [
            "id", "group", "label", "language_model", "parameters", "seed", "count", "requested_by", "requested_at",
            "finished_at", "failure",
        ]  # fmt: skip
        read_only_fields = fields


class TrialWithResponsesSerializer(TrialSerializer):
    """With the prompt and, once it is finished, the responses."""

    prompt = Text(source="prompt.text", read_only=True)
    responses = ResponseSerializer(many=True, read_only=True)

    class Meta(TrialSerializer.Meta):
        fields = [*TrialSerializer.Meta.fields, "prompt", "responses"]


class TrialToAskForSerializer(serializers.Serializer):
    """A prompt is drawn from the set, and so many responses to it are written."""

    group = Group()
    label = Choice(choices=Label.choices)
    count = Whole(min_value=1, max_value=trials.MOST_AT_ONCE, default=trials.COUNT)
    topk = TopKSerializer(required=False)
    language_model = Text(max_length=300, required=False, help_text="Left out: the one of the settings.")
    seed = Seed(required=False, allow_null=True, default=None, help_text="Left out, one is drawn and noted.")


class PromotionSerializer(serializers.Serializer):
    text = Text(max_length=demonstrating.LONGEST_TEXT, required=False, help_text="Left out: the response as it is.")


class BadSerializer(serializers.Serializer):
    because = Choice(choices=BadBecause.choices)
    remark = Text(max_length=judging.LONGEST_NOTE, required=False, default="", allow_blank=True)


class TrialFilters(Filters):
    group = GroupFilter()
    label = filters.ChoiceFilter(choices=Label)

    class Meta:
        model = Trial
        fields: list[str] = []


class TrialViewSet(Reads):
    """Prompts with fresh responses, to grow sets from. **Those of toxic sets hurt.**"""

    queryset = Trial.objects.select_related("group", "requested_by")
    filterset_class = TrialFilters

    def get_queryset(self):
        if self.action == "list":
            return super().get_queryset()
        return super().get_queryset().select_related("prompt").prefetch_related("responses")

    def get_serializer_class(self):
        return TrialSerializer if self.action == "list" else TrialWithResponsesSerializer

    @extend_schema(request=TrialToAskForSerializer, responses={201: TrialWithResponsesSerializer})
    def create(self, request) -> Answer:
        """Ask for responses; they are there as soon as `finished_at` says so."""
        asked = TrialToAskForSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        order = dict(asked.validated_data)
        topk = order.pop("topk", None)
        with refusals(invalid=(ValueError, NotEnoughDemonstrations)):
            trial = trials.ask(**order, parameters=TopKParameters(**topk) if topk else None, by=request.user)
        return Answer(self.get_serializer(trial).data, status=status.HTTP_201_CREATED)


class ResponseFilters(Filters):
    trial = filters.ModelChoiceFilter(queryset=Trial.objects.all())
    verdict = filters.ChoiceFilter(choices=Verdict)

    class Meta:
        model = Response
        fields: list[str] = []


class ResponseViewSet(Reads):
    """Responses, to be promoted into the set or marked bad."""

    queryset = Response.objects.all()
    serializer_class = ResponseSerializer
    filterset_class = ResponseFilters
    needs = {
        "promote": ["generation.change_response", "generation.add_demonstration"],
        "mark_bad": ["generation.change_response"],
        "undo": ["generation.change_response", "generation.change_demonstration"],
    }

    @extend_schema(request=PromotionSerializer, responses={201: DemonstrationSerializer})
    @action(detail=True, methods=["post"])
    def promote(self, request, pk=None) -> Answer:
        """Put a response into the set that its prompt was drawn from; once, however often asked."""
        response = self.get_object()
        asked = PromotionSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        with refusals(
            forbidden=FORBIDDEN,
            conflict=(demonstrating.AlreadyInSet, judging.JudgedAlready),
            invalid=(demonstrating.NotADemonstration,),
        ):
            demonstration = judging.promote(response_id=response.pk, **asked.validated_data, by=request.user)
        return Answer(DemonstrationSerializer(demonstration).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=BadSerializer, responses=ResponseSerializer)
    @action(detail=True, methods=["post"], url_path="mark-bad")
    def mark_bad(self, request, pk=None) -> Answer:
        """Note that a response is no good example and why."""
        response = self.get_object()
        asked = BadSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        with refusals(conflict=(judging.JudgedAlready,)):
            marked = judging.mark_bad(response_id=response.pk, **asked.validated_data, by=request.user)
        return Answer(self.get_serializer(marked).data)

    @extend_schema(request=None, responses=ResponseSerializer)
    @action(detail=True, methods=["post"])
    def undo(self, request, pk=None) -> Answer:
        """Take a verdict back; what had been promoted is retired."""
        undone = judging.undo(response_id=self.get_object().pk, by=request.user)
        return Answer(self.get_serializer(undone).data)
