"""Generations: statements, with their texts as they were written."""

from django.contrib.postgres.search import SearchQuery
from django.db.models import QuerySet
from django_filters import filters
from rest_framework import serializers

from generation.api.fields import Group, Rows, Text
from generation.api.frame import Filters, GroupFilter, ProbabilityFilter, Reads
from generation.models import TEXT_WORDS, FinishReason, Generation, GenerationRun, Label, Method


class GenerationSerializer(Rows):
    group = Group(read_only=True)

    class Meta:
        model = Generation
        fields = [
            "id", "run", "group", "label", "method", "text", "toxic_prob", "log_prob", "score", "tokens", "seed",
            "finish_reason", "created_at",
        ]  # fmt: skip


class GenerationWithSearchSerializer(GenerationSerializer):
    """With the prompt that it continues and, of ALICE, the n best of its search."""

    prompt = Text(source="prompt.text", allow_null=True, default=None)
    hypotheses = serializers.ListField(child=serializers.DictField())

    class Meta(GenerationSerializer.Meta):
        fields = [*GenerationSerializer.Meta.fields, "prompt", "hypotheses"]


class GenerationFilters(Filters):
    group = GroupFilter()
    label = filters.ChoiceFilter(choices=Label)
    method = filters.ChoiceFilter(choices=Method)
    finish_reason = filters.ChoiceFilter(choices=FinishReason)
    run = filters.ModelChoiceFilter(queryset=GenerationRun.objects.all())
    toxic_prob_from = ProbabilityFilter(field_name="toxic_prob", lookup_expr="gte")
    toxic_prob_to = ProbabilityFilter(field_name="toxic_prob", lookup_expr="lte")
    search = filters.CharFilter(
        method="with_words", label="Whole words that the text has, all of them.", max_length=200
    )

    class Meta:
        model = Generation
        fields: list[str] = []

    def with_words(self, generations: QuerySet[Generation], name: str, words: str) -> QuerySet[Generation]:
        return generations.annotate(words=TEXT_WORDS).filter(words=SearchQuery(words, config="simple"))


class GenerationViewSet(Reads):
    """Statements that were generated, imported or written. **Their texts may hurt.**"""

    queryset = Generation.objects.select_related("group")
    filterset_class = GenerationFilters

    def get_queryset(self) -> QuerySet[Generation]:
        if self.action == "retrieve":
            return super().get_queryset().select_related("prompt").defer(None)
        return super().get_queryset()

    def get_serializer_class(self):
        return GenerationWithSearchSerializer if self.action == "retrieve" else GenerationSerializer
