"""The ledger and the payouts, to be read."""

from django_filters import filters

from annotator.models import HITType, Payment, PaymentKind, Payout
from generation.api.fields import Rows, Text, Whole
from generation.api.frame import Filters, Reads, TruthFilter


class PaymentSerializer(Rows):
    worker = Text(source="worker.pseudonym", read_only=True)
    payout = Whole(source="paid_out.payout_id", read_only=True, allow_null=True, default=None)

    class Meta:
        model = Payment
        fields = ["id", "worker", "kind", "amount", "assignment", "reason", "payout", "created_at"]
        read_only_fields = fields


class PaymentFilters(Filters):
    worker = filters.CharFilter(field_name="worker__pseudonym", lookup_expr="iexact", max_length=20)
    kind = filters.ChoiceFilter(choices=PaymentKind)
    study = filters.ModelChoiceFilter(field_name="assignment__hit__hit_type", queryset=HITType.objects.all())
    payout = filters.ModelChoiceFilter(field_name="paid_out__payout", queryset=Payout.objects.all())
    paid = TruthFilter(field_name="paid_out", lookup_expr="isnull", exclude=True)

    class Meta:
        model = Payment
        fields: list[str] = []


class PaymentViewSet(Reads):
    """The ledger: what is owed to whom and why, in US dollars. Rows are never edited."""

    queryset = Payment.objects.select_related("worker", "paid_out")
    serializer_class = PaymentSerializer
    filterset_class = PaymentFilters


class PayoutSerializer(Rows):
    class Meta:
        model = Payout
        fields = ["id", "created_at"]
        read_only_fields = fields


class PayoutViewSet(Reads):
    """Batches of the ledger that were handed to whoever pays; their rows are `payments/?payout=…`."""

    queryset = Payout.objects.all()
    serializer_class = PayoutSerializer
