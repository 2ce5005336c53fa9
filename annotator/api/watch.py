"""A study as it stands, as the API says it."""

from rest_framework import serializers

from annotator.api.hits import HITSerializer
from generation.api.fields import Dollars, Number, Time, Truth, Whole


class PlacesSerializer(serializers.Serializer):
    """Places of statements whose answers are wanted; those with known answers are counted apart."""

    wanted = Whole()
    filled = Whole(help_text="By work that counts.")
    taken = Whole(help_text="Being worked on.")
    free = Whole(help_text="That can be accepted now.")
    closed = Whole(help_text="Of HITs that expired or were disposed of.")
    hits = Whole()
    complete = Whole(help_text="HITs all of whose places are filled.")
    checks = Whole(help_text="HITs with known answers.")
    percent = Whole()


class WorkSerializer(serializers.Serializer):
    submitted = Whole()
    submitted_today = Whole()
    at_work = Whole(help_text="People who have a statement open now.")
    people = Whole(help_text="Who submitted something.")
    filled_last_hour = Whole()
    filled_last_day = Whole()
    first_at = serializers.DateTimeField(allow_null=True)
    last_at = serializers.DateTimeField(allow_null=True)


class PaySerializer(serializers.Serializer):
    """US dollars."""

    approved = Dollars()
    bonuses = Dollars()
    waiting = Dollars(help_text="For review.")
    to_come = Dollars()
    so_far = Dollars()
    in_all = Dollars()


class PaceSerializer(serializers.Serializer):
    an_hour = Number(help_text="Places filled an hour.")
    n = Whole(help_text="How many places it was measured by.")
    left = Time(help_text="What the open places take at this pace.")


class DisputedSerializer(HITSerializer):
    """A HIT with how many answered in each toxicity class."""

    non_toxic = Whole(read_only=True)
    ambiguous = Whole(read_only=True)
    toxic = Whole(read_only=True)

    class Meta(HITSerializer.Meta):
        fields = [*HITSerializer.Meta.fields, "non_toxic", "ambiguous", "toxic"]
        read_only_fields = fields


class DisputeSerializer(serializers.Serializer):
    """On what people disagree: a majority is two thirds of a statement's annotators. **Texts may hurt.**"""

    complete = Whole(help_text="Statements all of whose places are filled.")
    without_majority = Whole(help_text="How many of these lack a majority.")
    most = DisputedSerializer(many=True)


class PointSerializer(serializers.Serializer):
    at = serializers.DateTimeField()
    filled = Whole(help_text="Places filled by then.")


class WatchSerializer(serializers.Serializer):
    """A study as it stands."""

    study = Whole(source="hit_type.pk")
    now = serializers.DateTimeField()
    is_over = Truth(help_text="Whether no place can be filled any more.")
    places = PlacesSerializer()
    work = WorkSerializer()
    pay = PaySerializer(allow_null=True, help_text="Null: imported work, which was paid elsewhere.")
    pace = PaceSerializer(allow_null=True, help_text="Null: nothing was filled within a day, or nothing is open.")
    dispute = DisputeSerializer()
    course = PointSerializer(many=True)
