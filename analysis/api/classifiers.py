"""Classifiers trained here: ordering a training, watching its curve, stopping it."""

from django_filters import filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.response import Response

from analysis.classifiers import orders
from analysis.models import LabelSource, LossPoint, TrainedClassifier, TrainingKind, TrainingMethods
from generation.api.fields import Choice, Object, Rows, Seed, Text, Username, Whole
from generation.api.frame import Conflict, Filters, Reads, refusals
from generation.models import Precision
from generation.readings import ENCODER

STATES = "queued, running, finished or failed."


class TrainedClassifierSerializer(Rows):
    state = Text(read_only=True, help_text=STATES)
    parameters = Object(read_only=True)
    data = Object(read_only=True, help_text="What it was trained on: counts, and what was left out.")
    scores = Object(read_only=True, help_text="On the validation statements, before and after.")
    notes = serializers.ListField(child=Text(), read_only=True)
    environment = Object(read_only=True, help_text="Device and versions.")
    created_by = Username()

    class Meta:
        model = TrainedClassifier
        fields = [
            "id", "name", "kind", "base", "labels", "methods", "size", "seed", "precision", "parameters", "state",
            "failure", "step", "steps", "data", "data_digest", "scores", "notes", "environment", "revision", "device",
            "seconds", "created_by", "created_at", "started_at", "finished_at",
        ]  # fmt: skip
        read_only_fields = fields


class LossPointSerializer(Rows):
    class Meta:
        model = LossPoint
        fields = ["step", "loss", "validation_loss", "validation_auc"]
        read_only_fields = fields


class TrainedClassifierWithCurveSerializer(TrainedClassifierSerializer):
    curve = LossPointSerializer(many=True, read_only=True, help_text="At step 0 the model before training.")

    class Meta(TrainedClassifierSerializer.Meta):
        fields = [*TrainedClassifierSerializer.Meta.fields, "curve"]


class TrainingOrderSerializer(serializers.Serializer):
    """A classifier as it is wanted."""

    name = Text(max_length=orders.LONGEST_NAME, help_text="Lower-case letters, digits and hyphens.")
    kind = Choice(choices=TrainingKind.choices, default=TrainingKind.HEAD)
    base = Text(
        max_length=orders.LONGEST_BASE, default=ENCODER, help_text="Embedded, trained here, a folder, or a model id."
    )
    labels = Choice(choices=LabelSource.choices, default=LabelSource.PROMPT)
    methods = Choice(choices=TrainingMethods.choices, default=TrainingMethods.BOTH)
    size = Whole(
        min_value=2, max_value=orders.MOST_SIZE, required=False, allow_null=True, help_text="Statements at most."
    )
    seed = Seed(default=0)
    precision = Choice(choices=Precision.choices, default=Precision.FLOAT32)
    parameters = Object(required=False, help_text="Of the kind of training; what is left out is as usual.")

    def validate_parameters(self, value) -> dict:
        if not isinstance(value, dict):
            raise serializers.ValidationError("Give an object, such as {“epochs”: 2}.")
        return value


class TrainedClassifierFilters(Filters):
    kind = filters.ChoiceFilter(choices=TrainingKind)

    class Meta:
        model = TrainedClassifier
        fields: list[str] = []


class TrainedClassifierViewSet(Reads):
    """Toxicity classifiers that were, or are being, trained here; a single one with its loss curve."""

    queryset = TrainedClassifier.objects.select_related("created_by")
    filterset_class = TrainedClassifierFilters
    needs = {name: ["analysis.change_trainedclassifier"] for name in ("stop", "resume")}

    def get_serializer_class(self):
        return TrainedClassifierSerializer if self.action == "list" else TrainedClassifierWithCurveSerializer

    @extend_schema(request=TrainingOrderSerializer, responses={202: TrainedClassifierWithCurveSerializer})
    def create(self, request) -> Response:
        """Have a classifier trained on the queue; it is done as soon as `finished_at` says so.

        Statements of HUMANVAL sets, and what is too similar to them, are left out, always.
        """
        asked = TrainingOrderSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        with refusals(conflict=(orders.NothingToTrainOn,), invalid=(ValueError,)):
            classifier = orders.start_training(**asked.validated_data, by=request.user)
        return self._answer(classifier, status.HTTP_202_ACCEPTED)

    @extend_schema(request=None, responses=TrainedClassifierWithCurveSerializer)
    @action(detail=True, methods=["post"])
    def stop(self, request, pk=None) -> Response:
        """End a training; it comes to nothing then."""
        classifier = self.get_object()
        if not orders.stop_training(classifier=classifier, by=request.user):
            raise Conflict(f"The training of {classifier} had ended before.")
        return self._answer(classifier)

    @extend_schema(request=None, responses=TrainedClassifierWithCurveSerializer)
    @action(detail=True, methods=["post"])
    def resume(self, request, pk=None) -> Response:
        """Have a training that failed go on from its last checkpoint; one that was stopped begins anew."""
        classifier = self.get_object()
        if not orders.resume_training(classifier=classifier, by=request.user):
            raise Conflict(f"The training of {classifier} has not failed.")
        return self._answer(classifier)

    def _answer(self, classifier: TrainedClassifier, code: int = status.HTTP_200_OK) -> Response:
        classifier.refresh_from_db()
        return Response(self.get_serializer(classifier).data, status=code)
