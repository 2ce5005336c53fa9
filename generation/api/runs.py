"""Runs: starting them, watching them, pausing, resuming and cancelling."""

from django.conf import settings
from django_filters import filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.response import Response

from generation import runs
from generation.api.fields import Choice, Group, Number, Object, Rows, Seed, Text, Truth, Whole
from generation.api.frame import Conflict, Filters, Reads, refusals
from generation.cells import Cell
from generation.models import GenerationCell, GenerationRun, Label, Precision, RunMethod, RunState
from generation.parameters import (
    HIGHEST_TEMPERATURE,
    LOWEST_TEMPERATURE,
    AliceParameters,
    Selection,
    TopKParameters,
)
from generation.prompting import NotEnoughDemonstrations

MOST_STATEMENTS = 100_000
MOST_CELLS = 200


class RunSerializer(Rows):
    parameters = Object(read_only=True, help_text="The decoding parameters of each method.")
    environment = Object(read_only=True, help_text="Device and versions, as last worked on.")

    class Meta:
        model = GenerationRun
        fields = [
            "id", "state", "method", "parameters", "language_model", "classifier", "precision", "environment", "seed",
            "failure", "repeats", "created_at", "started_at", "ended_at",
        ]  # fmt: skip
        read_only_fields = fields


class CellSerializer(Rows):
    """How far a run has come with one group and label."""

    group = Group(read_only=True)

    class Meta:
        model = GenerationCell
        fields = [
            "group", "label", "places", "stored", "decoding_seconds", "empty", "duplicate", "copy", "near_duplicate",
            "classifier_runs",
        ]  # fmt: skip
        read_only_fields = fields


class ProgressSerializer(serializers.Serializer):
    """How much is wanted, stored and was drawn again, and how fast; null is what is not known yet."""

    wanted = Whole(help_text="Statements.")
    stored = Whole(help_text="Statements.")
    percent = Whole()
    workers = Whole(help_text="How many are at work on it now.")
    seconds = Number(help_text="Of decoding.")
    statements_a_second = Number(allow_null=True, help_text="Of one worker.")
    statements_a_minute = Number(allow_null=True, help_text="Of all workers, lately.")
    seconds_left = Number(allow_null=True)
    near_duplicates = Whole(
        allow_null=True, help_text="Statements that say nearly what another one of their cell says; counted at the end."
    )
    drawn_again_empty = Whole()
    drawn_again_duplicate = Whole()
    drawn_again_copy = Whole()
    classifier_runs = Whole()
    classifier_runs_a_statement = Number(allow_null=True)


class RunWithProgressSerializer(RunSerializer):
    progress = ProgressSerializer(read_only=True)
    cells = CellSerializer(many=True, read_only=True)

    class Meta(RunSerializer.Meta):
        fields = [*RunSerializer.Meta.fields, "progress", "cells"]


class CellOrderSerializer(serializers.Serializer):
    """So many statements of a group and label, by each method of the run."""

    group = Group()
    label = Choice(choices=Label.choices)
    count = Whole(min_value=1, max_value=MOST_STATEMENTS)


class TopKSerializer(serializers.Serializer):
    """What is left out is as in the paper."""

    k = Whole(min_value=1, max_value=1_000_000, default=TopKParameters.k)
    temperature = Number(
        min_value=LOWEST_TEMPERATURE, max_value=HIGHEST_TEMPERATURE, default=TopKParameters.temperature
    )
    max_new_tokens = Whole(min_value=1, max_value=1000, default=TopKParameters.max_new_tokens)


class AliceSerializer(serializers.Serializer):
    """What is left out is as in the paper; the direction follows from the label."""

    lm_weight = Number(min_value=0, max_value=1000, default=AliceParameters.lm_weight)
    classifier_weight = Number(min_value=0, max_value=1000, default=AliceParameters.classifier_weight)
    beam = Whole(min_value=1, max_value=100, default=AliceParameters.beam)
    vocabulary = Whole(min_value=1, max_value=10_000, default=AliceParameters.vocabulary)
    temperature = Number(
        min_value=LOWEST_TEMPERATURE, max_value=HIGHEST_TEMPERATURE, default=AliceParameters.temperature
    )
    max_new_tokens = Whole(min_value=1, max_value=1000, default=AliceParameters.max_new_tokens)
    selection = Choice(choices=[choice.value for choice in Selection], default=AliceParameters.selection.value)
    no_repeat_ngram_size = Whole(min_value=0, max_value=100, default=AliceParameters.no_repeat_ngram_size)
    group_words_allowed = Truth(default=AliceParameters.group_words_allowed)
    n_best = Whole(min_value=1, max_value=100, default=AliceParameters.n_best)


class RunOrderSerializer(serializers.Serializer):
    """An order for statements."""

    cells = CellOrderSerializer(many=True, min_length=1, max_length=MOST_CELLS)
    method = Choice(choices=RunMethod.choices, default=RunMethod.TOPK)
    topk = TopKSerializer(required=False)
    alice = AliceSerializer(required=False)
    language_model = Text(max_length=300, required=False, help_text="Left out: the one of the settings.")
    classifier = Text(
        max_length=300,
        required=False,
        help_text="Of ALICE alone: the embedded one, the name of one trained here, a folder or a model id. "
        "Left out: the one of the settings.",
    )
    precision = Choice(choices=Precision.choices, default=Precision.FLOAT32)
    seed = Seed(required=False, allow_null=True, default=None, help_text="Left out, one is drawn and noted.")


class RunFilters(Filters):
    state = filters.MultipleChoiceFilter(choices=RunState)
    method = filters.ChoiceFilter(choices=RunMethod)

    class Meta:
        model = GenerationRun
        fields: list[str] = []


class RunViewSet(Reads):
    """Runs, newest first; a single one with its progress, and that of each of its cells."""

    queryset = GenerationRun.objects.all()
    filterset_class = RunFilters
    needs = {name: ["generation.change_generationrun"] for name in ("pause", "resume", "cancel")}

    def get_serializer_class(self):
        return RunSerializer if self.action == "list" else RunWithProgressSerializer

    @extend_schema(request=RunOrderSerializer, responses={201: RunWithProgressSerializer})
    def create(self, request) -> Response:
        """Start a run."""
        order = RunOrderSerializer(data=request.data)
        order.is_valid(raise_exception=True)
        with refusals(invalid=(ValueError, NotEnoughDemonstrations)):
            run = runs.start_run(**_arguments(order.validated_data), created_by=request.user)
        return Response(self.get_serializer(run).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=None, responses=RunWithProgressSerializer)
    @action(detail=True, methods=["post"])
    def pause(self, request, pk=None) -> Response:
        """Let nobody work on an open run until it is resumed."""
        run = self.get_object()
        return self._moved(
            run, runs.pause_run(run_id=run.pk, by=request.user), "not open, so that there is nothing to pause"
        )

    @extend_schema(request=None, responses=RunWithProgressSerializer)
    @action(detail=True, methods=["post"])
    def resume(self, request, pk=None) -> Response:
        """Put a paused run back into the queue."""
        run = self.get_object()
        return self._moved(
            run, runs.resume_run(run=run, by=request.user), "not paused, so that there is nothing to resume"
        )

    @extend_schema(request=None, responses=RunWithProgressSerializer)
    @action(detail=True, methods=["post"])
    def cancel(self, request, pk=None) -> Response:
        """End an open or paused run; what is stored stays."""
        run = self.get_object()
        return self._moved(run, runs.cancel_run(run=run, by=request.user), "ended already")

    def _moved(self, run: GenerationRun, moved: bool, why_not: str) -> Response:
        run.refresh_from_db()
        if not moved:
            raise Conflict(f"Run {run.pk} is {run.get_state_display()}: it is {why_not}.")
        return Response(self.get_serializer(run).data)


def _arguments(order: dict) -> dict:
    """What ``start_run`` is called with for an order."""
    searches = order["method"] != RunMethod.TOPK
    return {
        "cells": [Cell(cell["group"], Label(cell["label"]), cell["count"]) for cell in order["cells"]],
        "method": order["method"],
        "topk": TopKParameters(**order["topk"]) if "topk" in order else None,
        "alice": AliceParameters(**order["alice"]) if "alice" in order else None,
        "language_model": order.get("language_model", settings.LANGUAGE_MODEL),
        "classifier": order.get("classifier", settings.CLASSIFIER if searches else ""),
        "precision": order["precision"],
        "seed": order["seed"],
    }
