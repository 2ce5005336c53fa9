"""What the API's views share: the order in which a request is looked at, refusals, fields and filters."""

from collections.abc import Iterator
from contextlib import contextmanager

from django import forms
from django_filters import filters
from django_filters.rest_framework import FilterSet
from drf_spectacular.utils import extend_schema_field
from rest_framework import mixins, serializers, status
from rest_framework.exceptions import APIException, PermissionDenied, ValidationError
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.viewsets import GenericViewSet

from generation.api.fields import Whole
from generation.models import TargetGroup

MOST_AT_ONCE = 1000
Errors = tuple[type[Exception], ...]


class Conflict(APIException):
    """What is asked for cannot be done as things are; the message says why."""

    status_code = status.HTTP_409_CONFLICT
    default_code = "conflict"


@contextmanager
def refusals(*, forbidden: Errors = (), conflict: Errors = (), invalid: Errors = ()) -> Iterator[None]:
    """Answer an act's named errors: 403 for what somebody may not, 409 for what cannot be done as things are, 400 for
    what was asked wrongly."""
    try:
        yield
    except forbidden as refused:
        raise PermissionDenied(str(refused)) from refused
    except conflict as refused:
        raise Conflict(str(refused)) from refused
    except invalid as refused:
        raise ValidationError([str(refused)]) from refused


class View(GenericViewSet):
    """Counts every request before anybody is refused, so that guessing tokens is limited, too.

    ``needs`` names the permissions of actions that are not the model's own.
    """

    needs: dict[str, list[str]] = {}

    def perform_authentication(self, request) -> None:
        try:
            super().perform_authentication(request)
        finally:
            super().check_throttles(request)

    def check_throttles(self, request) -> None:
        """Done above."""


class AnyForm(BaseContentNegotiation):
    """The address says in which form the file is wanted; what the client would accept is not asked."""

    def select_parser(self, request, parsers):
        return parsers[0]

    def select_renderer(self, request, renderers, format_suffix=None):
        return renderers[0], renderers[0].media_type


class Reads(mixins.ListModelMixin, mixins.RetrieveModelMixin, View):
    """A list and its rows."""


class IdsSerializer(serializers.Serializer):
    """Which rows an act is about."""

    ids = serializers.ListField(child=Whole(min_value=1), min_length=1, max_length=MOST_AT_ONCE)


class DoneSerializer(serializers.Serializer):
    """What an act did to many rows: those it changed, how many it left and why, and what else there is to say."""

    changed = serializers.ListField(child=serializers.IntegerField(), help_text="The ids.")
    left = serializers.DictField(child=serializers.IntegerField(), help_text="How many, by the reason.")
    remarks = serializers.DictField(child=serializers.IntegerField(), help_text="How many, by what is to be said.")


@extend_schema_field({"type": "string"})
class GroupFilter(filters.ModelMultipleChoiceFilter):
    """By the slugs of groups; several mean any of them."""

    def __init__(self, *, field_name: str = "group", **options):
        slugs = {"field_name": f"{field_name}__slug", "to_field_name": "slug", "queryset": TargetGroup.objects.all()}
        super().__init__(**slugs | options)


@extend_schema_field({"type": "boolean"})
class TruthFilter(filters.TypedChoiceFilter):
    """By “true” or “false”."""

    def __init__(self, **options):
        choices = [("true", "true"), ("false", "false")]
        super().__init__(choices=choices, coerce=lambda word: word == "true", **options)


class ProbabilityFilter(filters.Filter):
    """A number from 0 to 1."""

    field_class = forms.FloatField

    def __init__(self, **options):
        super().__init__(min_value=0, max_value=1, **options)


class Filters(FilterSet):
    """A filter that there is not is refused, so that a typing error does not return everything."""

    passed_over = {"cursor", "page_size"}

    def is_valid(self) -> bool:
        valid = super().is_valid()
        for name in sorted(self.data.keys() - self.passed_over):
            if name not in self.filters:
                known = ", ".join(self.filters) or "none"
                self.form.add_error(None, f"There is no filter “{name}”. There are: {known}.")
            elif "" in self.data.getlist(name):
                self.form.add_error(name, "Give the filter a value, or leave it out.")
        return valid and self.form.is_valid()
