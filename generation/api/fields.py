"""Fields that take what the description says and nothing near it: a number is no text, a text no number."""

from datetime import timedelta

from django.db import models
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.relations import MANY_RELATION_KWARGS

from generation.models import TargetGroup

LARGEST = 2**63 - 1
LONGEST_TIME = timedelta(days=3650)


class Text(serializers.CharField):
    def to_internal_value(self, data) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class Slug(Text, serializers.SlugField):
    """Letters, digits, hyphens and underscores."""


class Whole(serializers.IntegerField):
    """A whole number that the database can store, wherever nothing smaller is said."""

    def __init__(self, **options):
        if not options.get("read_only"):
            options = {"min_value": -LARGEST, "max_value": LARGEST} | options
        super().__init__(**options)

    def to_internal_value(self, data) -> int:
        if isinstance(data, bool | str) or not isinstance(data, int | float):
            self.fail("invalid")
        return super().to_internal_value(data)


class Number(serializers.FloatField):
    def to_internal_value(self, data) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float):
            self.fail("invalid")
        return super().to_internal_value(data)


class Truth(serializers.BooleanField):
    def to_internal_value(self, data) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class Seed(Whole):
    """Decides what is drawn."""

    def __init__(self, **options):
        super().__init__(**{"min_value": 0, "max_value": LARGEST} | options)


class Dollars(serializers.DecimalField):
    """US dollars as a text, “0.25”, so that no cent is lost."""

    def __init__(self, **options):
        super().__init__(**{"max_digits": None, "decimal_places": 2} | options)

    def to_internal_value(self, data):
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


@extend_schema_field({"type": "string", "examples": ["00:30:00", "3 00:00:00"]})
class Time(serializers.DurationField):
    """A length of time as “days hours:minutes:seconds”."""

    def __init__(self, **options):
        super().__init__(**{"max_value": LONGEST_TIME} | options)

    def to_internal_value(self, value) -> timedelta:
        if not isinstance(value, str):
            self.fail("invalid", format="[DD] [HH:[MM:]]ss[.uuuuuu]")
        return super().to_internal_value(value)


class Many(serializers.ManyRelatedField):
    """A list of rows, and nothing else that can be walked through."""

    def to_internal_value(self, data) -> list:
        if not isinstance(data, list):
            self.fail("not_a_list", input_type=type(data).__name__)
        return super().to_internal_value(data)


def many(child: serializers.RelatedField, options: dict) -> Many:
    """A list of what the child takes, with its own options among those of both."""
    of_the_list = {name: options[name] for name in MANY_RELATION_KWARGS if name in options}
    return Many(child_relation=child, **of_the_list)


@extend_schema_field({"type": "string"})
class Group(serializers.SlugRelatedField):
    """A group by its slug."""

    def __init__(self, **options):
        if not options.get("read_only"):
            options = {"queryset": TargetGroup.objects.all()} | options
        super().__init__(slug_field="slug", **options)

    @classmethod
    def many_init(cls, *args, **options) -> Many:
        return many(cls(*args, **options), options)

    def to_internal_value(self, data) -> TargetGroup:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


@extend_schema_field({"type": "string"})
class Username(serializers.SlugRelatedField):
    """Who did it."""

    def __init__(self, **options):
        super().__init__(slug_field="username", read_only=True, allow_null=True, **options)


class Row(serializers.PrimaryKeyRelatedField):
    """A row by its id."""

    @classmethod
    def many_init(cls, *args, **options) -> Many:
        return many(cls(*args, **options), options)

    def to_internal_value(self, data):
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("incorrect_type", data_type=type(data).__name__)
        return super().to_internal_value(data)


@extend_schema_field({"type": "object", "additionalProperties": {}})
class Object(serializers.JSONField):
    """An object whose members the description does not name."""


class Choice(serializers.ChoiceField):
    """One of a few words."""

    def __init__(self, choices, **options):
        super().__init__(choices, **options)
        there = ", ".join(str(value) for value in self.choices)
        self.error_messages["invalid_choice"] = f"“{{input}}” is no choice. There are: {there}."

    def to_internal_value(self, data) -> str:
        if not isinstance(data, str):
            self.fail("invalid_choice", input=data)
        return super().to_internal_value(data)


class Rows(serializers.ModelSerializer):
    """Rows of a model by the fields above."""

    serializer_field_mapping = serializers.ModelSerializer.serializer_field_mapping | {
        models.CharField: Text,
        models.TextField: Text,
        models.SlugField: Slug,
        models.SmallIntegerField: Whole,
        models.IntegerField: Whole,
        models.PositiveSmallIntegerField: Whole,
        models.PositiveIntegerField: Whole,
        models.BigIntegerField: Whole,
        models.FloatField: Number,
        models.BooleanField: Truth,
    }
    serializer_choice_field = Choice
    serializer_related_field = Row

    def include_extra_kwargs(self, kwargs: dict, extra_kwargs: dict) -> dict:
        """Keep what else would be lost of fields that are only read: that a choice may be empty."""
        blank = kwargs.get("allow_blank", False)
        options = super().include_extra_kwargs(kwargs, extra_kwargs)
        return options | {"allow_blank": True} if blank and "choices" in options else options
