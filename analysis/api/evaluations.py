"""Test sets from files, and what classifiers make of these and of HUMANVAL sets."""

from django_filters import filters
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response

from analysis.classifiers import evaluation_sets, evaluations
from analysis.classifiers.figures import figures_of
from analysis.evaluated import results_of
from analysis.imports.work import REFUSE, SKIP
from analysis.models import Evaluation, EvaluationSet, HumanvalSet
from analysis.seen import warnings_on
from generation.api.fields import Choice, Number, Object, Row, Rows, Text, Username, Whole
from generation.api.frame import Conflict, Filters, Reads, refusals
from generation.models import Precision

MOST_VALUES = 100


# --- Test sets -----------------------------------------------------------------------------------


class TestSetSerializer(Rows):
    __test__ = False  # pytest would take it for tests

    columns = Object(read_only=True, help_text="How the file was read.")
    left_out = Object(read_only=True, help_text="How many rows were left out, by the reason.")
    created_by = Username()

    class Meta:
        model = EvaluationSet
        fields = [
            "id", "name", "file_name", "sha256", "columns", "left_out", "texts_count", "toxic_count", "created_by",
            "created_at",
        ]  # fmt: skip
        read_only_fields = fields


class TestSetUploadSerializer(serializers.Serializer):
    """A file with texts and labels, and which of its columns are what."""

    __test__ = False

    file = serializers.FileField(help_text="CSV, JSON lines or Parquet.")
    text = serializers.CharField(max_length=200, help_text="The column with the texts.")
    label = serializers.CharField(max_length=200, help_text="The column with the labels.")
    positive = serializers.ListField(
        child=serializers.CharField(max_length=200), required=False, max_length=MOST_VALUES,
        help_text="The labels that mean toxic; 1 is 1.0.",
    )  # fmt: skip
    above = serializers.FloatField(required=False, help_text="Or: labels above it mean toxic.")
    group = serializers.CharField(max_length=200, required=False, help_text="The column with whom a text is about.")
    functionality = serializers.CharField(max_length=200, required=False, help_text="The column with what is tested.")
    where = serializers.ListField(
        child=serializers.RegexField(r"^[^=]+=", max_length=400, error_messages={"invalid": "Write COLUMN=VALUE."}),
        required=False, max_length=MOST_VALUES,
        help_text="COLUMN=VALUE: only such rows are taken; of one column several are any of them.",
    )  # fmt: skip
    name = serializers.CharField(
        max_length=evaluation_sets.LONGEST_NAME, required=False, help_text="Left out: made of the file's."
    )
    encoding = serializers.CharField(max_length=30, required=False, help_text="Where it is neither UTF-8 nor marked.")
    on_fault = serializers.ChoiceField(
        choices=[(REFUSE, "store nothing"), (SKIP, "leave faulty rows out")], default=REFUSE
    )

    def validate_where(self, conditions: list[str]) -> dict[str, list[str]]:
        by_column: dict[str, list[str]] = {}
        for condition in conditions:
            column, _, value = condition.partition("=")
            by_column.setdefault(column, []).append(value)
        return by_column


class TestSetViewSet(Reads):
    """Texts with labels from files, to test classifiers on: never part of the dataset."""

    __test__ = False

    queryset = EvaluationSet.objects.select_related("created_by")
    serializer_class = TestSetSerializer
    parser_classes = [MultiPartParser]

    @extend_schema(
        request={"multipart/form-data": TestSetUploadSerializer},
        responses={200: TestSetSerializer, 201: TestSetSerializer},
    )
    def create(self, request) -> Response:
        """Make a test set of a file; 200: it was made of the same file before, and nothing was changed."""
        if unknown := request.data.keys() - TestSetUploadSerializer().fields.keys():
            sentence = f"There is no such field. Choose from: {', '.join(TestSetUploadSerializer().fields)}."
            raise ValidationError({name: [sentence] for name in sorted(unknown)})
        asked = TestSetUploadSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        with refusals(invalid=(evaluation_sets.WrongFile,)):
            made = evaluation_sets.import_test_set(**asked.validated_data, by=request.user)
        code = status.HTTP_200_OK if made.was_there else status.HTTP_201_CREATED
        return Response(self.get_serializer(made).data, status=code)


# --- Evaluations ---------------------------------------------------------------------------------


class FiguresSerializer(serializers.Serializer):
    """What the scores are worth; null is what the texts leave undefined. A text from 0.5 on is taken for toxic."""

    texts = Whole(help_text="Those labelled toxic or benign.")
    toxic = Whole()
    ambiguous = Whole(help_text="Statements of HUMANVAL that people find neither; they are left out.")
    unlabelled = Whole(help_text="Statements of HUMANVAL that nobody understood; they are left out, too.")
    unscored = Whole(help_text="Texts that have no score any more; they are left out, too.")
    auc = Number(allow_null=True)
    f1 = Number(allow_null=True)
    accuracy = Number(allow_null=True)
    calibration_error = Number(allow_null=True)
    false_positive_rate = Number(allow_null=True)
    spread = Number(allow_null=True, help_text="Between the groups with the largest and the smallest such rate.")


class EvaluationSerializer(Rows):
    state = Text(read_only=True, help_text="queued, running, finished or failed.")
    revision = serializers.SerializerMethodField(help_text="Of the model; null until a worker has loaded it.")
    test_set = Whole(source="evaluation_set_id", read_only=True, allow_null=True)
    humanval = Whole(source="humanval_set_id", read_only=True, allow_null=True)
    created_by = Username()

    class Meta:
        model = Evaluation
        fields = [
            "id", "model", "precision", "revision", "test_set", "humanval", "texts", "scored", "state", "failure",
            "device", "seconds", "created_by", "created_at", "started_at", "finished_at",
        ]  # fmt: skip
        read_only_fields = fields

    def get_revision(self, evaluation: Evaluation) -> str | None:
        return evaluation.reader and evaluation.reader.revision


class EvaluationWithFiguresSerializer(EvaluationSerializer):
    figures = serializers.SerializerMethodField(help_text="Null until all texts are scored.")
    warnings = serializers.SerializerMethodField(help_text="What must be said with the figures: texts trained on.")

    class Meta(EvaluationSerializer.Meta):
        fields = [*EvaluationSerializer.Meta.fields, "figures", "warnings"]

    @extend_schema_field(FiguresSerializer(allow_null=True))
    def get_figures(self, evaluation: Evaluation) -> dict | None:
        results = results_of(evaluation)
        return results and FiguresSerializer(figures_of(results)).data

    @extend_schema_field(serializers.ListField(child=Text()))
    def get_warnings(self, evaluation: Evaluation) -> list[str]:
        results = results_of(evaluation)
        return warnings_on(evaluation, results) if results else []


class EvaluationOrderSerializer(serializers.Serializer):
    """A classifier, and the one test set that it scores: `test_set`, or a frozen `humanval`."""

    model = Text(max_length=300, help_text="The embedded one, one trained here, a folder, or a model id.")
    precision = Choice(choices=Precision.choices, default=Precision.FLOAT32)
    test_set = Row(queryset=EvaluationSet.objects.all(), required=False, allow_null=True)
    humanval = Row(queryset=HumanvalSet.objects.all(), required=False, allow_null=True)


class EvaluationFilters(Filters):
    model = filters.CharFilter(max_length=300)
    test_set = filters.ModelChoiceFilter(field_name="evaluation_set", queryset=EvaluationSet.objects.all())
    humanval = filters.ModelChoiceFilter(field_name="humanval_set", queryset=HumanvalSet.objects.all())

    class Meta:
        model = Evaluation
        fields: list[str] = []


class EvaluationViewSet(Reads):
    """What classifiers make of test sets; a single one with its figures."""

    queryset = Evaluation.objects.select_related("reader", "created_by", "humanval_set", "evaluation_set")
    filterset_class = EvaluationFilters
    needs = {"stop": ["analysis.add_evaluation"]}

    def get_serializer_class(self):
        return EvaluationSerializer if self.action == "list" else EvaluationWithFiguresSerializer

    @extend_schema(
        request=EvaluationOrderSerializer,
        responses={200: EvaluationWithFiguresSerializer, 202: EvaluationWithFiguresSerializer},
    )
    def create(self, request) -> Response:
        """Have a classifier score a test set on the queue; 200: the evaluation of the same that is under way."""
        asked = EvaluationOrderSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        order = asked.validated_data
        with refusals(conflict=(evaluations.NothingToEvaluate,), invalid=(ValueError,)):
            evaluation = evaluations.start_evaluation(
                model=order["model"],
                precision=order["precision"],
                evaluation_set=order.get("test_set"),
                humanval_set=order.get("humanval"),
                by=request.user,
            )
        code = status.HTTP_200_OK if evaluation.was_under_way else status.HTTP_202_ACCEPTED
        return self._answer(evaluation, code)

    @extend_schema(request=None, responses=EvaluationWithFiguresSerializer)
    @action(detail=True, methods=["post"])
    def stop(self, request, pk=None) -> Response:
        """End an evaluation; what was scored is kept."""
        evaluation = self.get_object()
        if not evaluations.stop_evaluation(evaluation=evaluation, by=request.user):
            raise Conflict(f"The evaluation of {evaluation} had ended before.")
        return self._answer(evaluation)

    def _answer(self, evaluation: Evaluation, code: int = status.HTTP_200_OK) -> Response:
        evaluation.refresh_from_db()
        return Response(self.get_serializer(evaluation).data, status=code)
