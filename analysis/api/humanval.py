"""HUMANVAL sets: drawing them, having them judged, freezing and checking them."""

from collections.abc import Mapping

from django_filters import filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response

from analysis.exports.filtering import WrongFilter
from analysis.humanval import comparing, freezing, proving, sets
from analysis.humanval.pool import METHODS
from analysis.models import HumanvalProof, HumanvalSet, HumanvalState
from annotator import publishing, wages
from annotator.models import HITType
from generation.api.fields import Choice, Dollars, Group, Number, Object, Row, Rows, Text, Time, Truth, Username, Whole
from generation.api.frame import Conflict, Filters, Reads, refusals
from generation.models import GenerationRun, Label


class HumanvalSerializer(Rows):
    filters = Object(read_only=True, help_text="Which statements there were to choose from, as exports take it.")
    report = Object(read_only=True, help_text="What the drawing found: strata, neighbours, what was removed.")
    agreement = Object(read_only=True, help_text="How far the annotators agree, at the freezing.")
    created_by = Username()
    encoder = Text(source="reader", read_only=True, allow_null=True, help_text="Of the embeddings, with its revision.")

    class Meta:
        model = HumanvalSet
        fields = [
            "id", "version", "state", "failure", "based_on", "size", "threshold", "candidates", "seed", "filters",
            "encoder", "compared_up_to", "report", "hit_type", "agreement", "checksum", "created_by", "created_at",
            "finished_at", "frozen_at",
        ]  # fmt: skip
        read_only_fields = fields


class PoolSerializer(serializers.Serializer):
    """Which statements there are to choose from. What is left out filters nothing."""

    group = Group(many=True, required=False)
    label = serializers.ListField(child=Choice(choices=Label.choices), required=False, max_length=len(Label.values))
    method = serializers.ListField(
        child=Choice(choices=[(str(method), method.label) for method in METHODS]),
        required=False,
        max_length=len(METHODS),
    )
    run = Row(queryset=GenerationRun.objects.all(), required=False)
    imported = Truth(required=False)
    study = Row(queryset=HITType.objects.all(), many=True, required=False)
    score_min = Number(min_value=0, max_value=1, required=False)
    score_max = Number(min_value=0, max_value=1, required=False)

    def to_internal_value(self, data) -> dict:
        """With a filter that there is not refused: a typing error would choose from everything."""
        if isinstance(data, Mapping) and (unknown := data.keys() - self.fields.keys()):
            sentence = f"There is no such filter. There are: {', '.join(self.fields)}."
            raise ValidationError({name: [sentence] for name in sorted(unknown)})
        return super().to_internal_value(data)

    def given(self) -> dict:
        """As a query string has them."""
        words = {"group": lambda groups: [group.slug for group in groups], "study": _ids, "run": lambda run: run.pk}
        words["imported"] = lambda imported: "yes" if imported else "no"
        return {name: words.get(name, lambda value: value)(value) for name, value in self.validated_data.items()}


class SetOrderSerializer(serializers.Serializer):
    """A set as it is wanted."""

    size = Whole(min_value=1, max_value=sets.MOST_SIZE, default=sets.SIZE)
    threshold = Number(default=sets.THRESHOLD, help_text="A cosine above 0 and up to 1.")
    candidates = Whole(
        min_value=1,
        max_value=sets.MOST_CANDIDATES,
        default=sets.CANDIDATES,
        help_text="So many are drawn for each place; the most isolated are taken.",
    )
    seed = Whole(min_value=0, max_value=sets.SEED_LIMIT - 1, help_text="The same one draws the same again.")
    filters = PoolSerializer(required=False)


class TermsSerializer(serializers.Serializer):
    """The study that judges the set; what is left out is as usual."""

    title = Text(max_length=200, required=False)
    description = Text(required=False)
    reward = Dollars(max_digits=6, min_value=0, required=False, help_text="US dollars a statement.")
    wage_floor = Dollars(max_digits=6, min_value=0, required=False, help_text="US dollars an hour.")
    expected_time = Time(required=False)
    max_assignments = Whole(
        min_value=freezing.ANNOTATORS,
        max_value=100,
        required=False,
        help_text="Annotators a statement, three at least.",
    )


class PublishedSerializer(serializers.Serializer):
    study = Whole()
    hits = Whole(help_text="How many HITs were made.")


class ProofSerializer(Rows):
    found = Object(read_only=True, allow_null=True, help_text="Whether it holds, and each thing that is wrong.")

    class Meta:
        model = HumanvalProof
        fields = ["id", "asked_at", "finished_at", "failure", "found"]
        read_only_fields = fields


class ChangedSerializer(serializers.Serializer):
    changed = Truth(help_text="Whether it would be frozen with other labels now.")


class HumanvalFilters(Filters):
    state = filters.MultipleChoiceFilter(choices=HumanvalState)

    class Meta:
        model = HumanvalSet
        fields: list[str] = []


CHANGE = ["analysis.change_humanvalset"]
REFUSED = (freezing.WrongState, publishing.StudyClosed, wages.PayTooLow)


class HumanvalViewSet(Reads):
    """Sets for testing: no training statement is too similar to one of them. Once frozen, they never change."""

    queryset = HumanvalSet.objects.select_related("created_by", "reader")
    serializer_class = HumanvalSerializer
    filterset_class = HumanvalFilters
    needs = {
        "publish": [*CHANGE, "annotator.add_hittype", "annotator.change_hittype"],
        "freeze": CHANGE,
        "new_version": CHANGE,
        "compare": CHANGE,
        "stop": CHANGE,
        "verify": CHANGE,
        "verification": ["analysis.view_humanvalset"],
        "changed": ["analysis.view_humanvalset", "annotator.view_annotation"],
    }

    @extend_schema(request=SetOrderSerializer, responses={202: HumanvalSerializer})
    def create(self, request) -> Response:
        """Have a set drawn, the next version; it is done as soon as `finished_at` says so."""
        asked = SetOrderSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        order = dict(asked.validated_data)
        pool = PoolSerializer(data=request.data.get("filters", {}))
        pool.is_valid(raise_exception=True)
        order["filters"] = pool.given()
        try:
            wanted = sets.ask_for_set(**order, by=request.user)
        except sets.CannotDraw as refused:
            raise ValidationError({refused.field: [str(refused)]}) from refused
        except WrongFilter as wrong:
            raise ValidationError(wrong.faults) from wrong
        return self._answer(wanted, status.HTTP_202_ACCEPTED)

    @extend_schema(request=None, responses=HumanvalSerializer)
    @action(detail=True, methods=["post"])
    def stop(self, request, pk=None) -> Response:
        """Have a set drawn no longer."""
        wanted = self.get_object()
        if not sets.give_up(humanval_set=wanted, by=request.user):
            raise Conflict(f"{wanted} had been drawn before.")
        return self._answer(wanted)

    @extend_schema(request=TermsSerializer, responses=PublishedSerializer)
    @action(detail=True, methods=["post"])
    def publish(self, request, pk=None) -> Response:
        """Make a study of a drawn set, with three annotators a statement unless you ask for more."""
        terms = TermsSerializer(data=request.data)
        terms.is_valid(raise_exception=True)
        drawn = self.get_object()
        with refusals(conflict=REFUSED):
            made = freezing.publish(humanval_set=drawn, by=request.user, **terms.validated_data)
        return Response({"study": drawn.hit_type_id, "hits": made})

    @extend_schema(request=None, responses=HumanvalSerializer)
    @action(detail=True, methods=["post"])
    def freeze(self, request, pk=None) -> Response:
        """Freeze a judged set with its labels, the agreement and a checksum. **Nothing of it changes after that.**"""
        with refusals(conflict=REFUSED):
            return self._answer(freezing.freeze(humanval_set=self.get_object(), by=request.user))

    @extend_schema(request=None, responses={201: HumanvalSerializer})
    @action(detail=True, methods=["post"], url_path="new-version")
    def new_version(self, request, pk=None) -> Response:
        """Freeze the statements of a frozen set anew, with the answers there are now, if these have changed."""
        with refusals(conflict=REFUSED):
            made = freezing.new_version(humanval_set=self.get_object(), by=request.user)
        return self._answer(made, status.HTTP_201_CREATED)

    @extend_schema(responses=ChangedSerializer, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def changed(self, request, pk=None) -> Response:
        """Whether the answers have changed since the freezing."""
        frozen = self.get_object()
        if frozen.state != HumanvalState.FROZEN:
            raise Conflict(f"{frozen} is not frozen.")
        return Response({"changed": freezing.has_changed(frozen)})

    @extend_schema(request=None, responses={202: HumanvalSerializer})
    @action(detail=True, methods=["post"])
    def compare(self, request, pk=None) -> Response:
        """Compare what was stored since with the set; what is too similar leaves training. On the queue."""
        humanval_set = self.get_object()
        with refusals(conflict=REFUSED):
            comparing.ask_to_compare(humanval_set=humanval_set, by=request.user)
        return self._answer(humanval_set, status.HTTP_202_ACCEPTED)

    @extend_schema(request=None, responses={202: ProofSerializer})
    @action(detail=True, methods=["post"])
    def verify(self, request, pk=None) -> Response:
        """Have the set checked again from the texts, on the queue; it is done as soon as `finished_at` says so."""
        with refusals(conflict=REFUSED):
            proof = proving.ask_for_proof(humanval_set=self.get_object(), by=request.user)
        proof.refresh_from_db()
        return Response(ProofSerializer(proof).data, status=status.HTTP_202_ACCEPTED)

    @extend_schema(responses=ProofSerializer, filters=False)
    @action(detail=True, methods=["get"], pagination_class=None)
    def verification(self, request, pk=None) -> Response:
        """What the newest check found."""
        proof = self.get_object().proofs.first()
        if proof is None:
            raise Conflict("It was not checked yet.")
        return Response(ProofSerializer(proof).data)

    def _answer(self, humanval_set: HumanvalSet, code: int = status.HTTP_200_OK) -> Response:
        humanval_set.refresh_from_db()
        return Response(self.get_serializer(humanval_set).data, status=code)


def _ids(rows) -> list[int]:
    return [row.pk for row in rows]
