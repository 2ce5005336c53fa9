"""Groups."""

from django_filters import filters
from rest_framework import mixins

from generation.api.fields import Rows
from generation.api.frame import Filters, Reads
from generation.models import TargetGroup


class GroupSerializer(Rows):
    class Meta:
        model = TargetGroup
        fields = ["id", "slug", "name", "words", "naming_words", "position"]


class GroupFilters(Filters):
    slug = filters.CharFilter()

    class Meta:
        model = TargetGroup
        fields = ["slug"]


class GroupViewSet(mixins.CreateModelMixin, mixins.UpdateModelMixin, Reads):
    """The groups that statements are about."""

    queryset = TargetGroup.objects.all()
    serializer_class = GroupSerializer
    filterset_class = GroupFilters
    http_method_names = ["get", "head", "post", "patch"]
