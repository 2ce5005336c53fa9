"""The audit trail, to be read."""

from django_filters import filters

from generation.api.fields import Object, Rows, Username
from generation.api.frame import Filters, Reads
from generation.models import AuditEntry


class AuditEntrySerializer(Rows):
    by = Username(help_text="Null: the command line, or the machine by itself.")
    details = Object(read_only=True)

    class Meta:
        model = AuditEntry
        fields = ["id", "at", "by", "act", "subject", "details"]


class AuditFilters(Filters):
    act = filters.CharFilter(max_length=50)
    by = filters.CharFilter(field_name="by__username", max_length=150)

    class Meta:
        model = AuditEntry
        fields: list[str] = []


class AuditEntryViewSet(Reads):
    """Who generated, imported, published and exported what, and when."""

    queryset = AuditEntry.objects.select_related("by")
    serializer_class = AuditEntrySerializer
    filterset_class = AuditFilters
