"""Who may come in and who is qualified: invitations, panels, qualifications."""

from django_filters import filters
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import mixins, serializers, status
from rest_framework.decorators import action
from rest_framework.response import Response

from annotator import inviting
from annotator.models import Invitation, Qualification
from generation.api.fields import Rows, Text
from generation.api.frame import Filters, Reads, TruthFilter


class InvitationSerializer(Rows):
    worker = Text(source="worker.pseudonym", read_only=True)
    link = serializers.SerializerMethodField(help_text="The address to send to the person. Whoever has it comes in.")

    class Meta:
        model = Invitation
        fields = ["id", "worker", "note", "link", "created_at", "used_at", "revoked_at"]
        read_only_fields = ["id", "created_at", "used_at", "revoked_at"]

    @extend_schema_field({"type": "string", "format": "uri"})
    def get_link(self, invitation: Invitation) -> str:
        return inviting.link(invitation)


class InvitationFilters(Filters):
    worker = filters.CharFilter(field_name="worker__pseudonym", lookup_expr="iexact", max_length=20)
    revoked = TruthFilter(field_name="revoked_at", lookup_expr="isnull", exclude=True)
    used = TruthFilter(field_name="used_at", lookup_expr="isnull", exclude=True)

    class Meta:
        model = Invitation
        fields: list[str] = []


class InvitationViewSet(mixins.CreateModelMixin, Reads):
    """Personal links: each lets one new pseudonymous worker in."""

    queryset = Invitation.objects.select_related("worker")
    serializer_class = InvitationSerializer
    filterset_class = InvitationFilters
    needs = {
        "revoke": ["annotator.change_invitation"],
        "replace": ["annotator.change_invitation"],
    }

    def perform_create(self, serializer) -> None:
        serializer.instance = inviting.invite(**serializer.validated_data)

    @extend_schema(request=None, responses=InvitationSerializer)
    @action(detail=True, methods=["post"])
    def revoke(self, request, pk=None) -> Response:
        """Let nobody in by the link any more; twice is as once."""
        invitation = self.get_object()
        inviting.revoke(invitation=invitation)
        invitation.refresh_from_db(fields=["revoked_at"])
        return Response(self.get_serializer(invitation).data)

    @extend_schema(request=None, responses={201: InvitationSerializer})
    @action(detail=True, methods=["post"])
    def replace(self, request, pk=None) -> Response:
        """Revoke the link and make a new one for the same worker."""
        made = inviting.replace(invitation=self.get_object())
        return Response(self.get_serializer(made).data, status=status.HTTP_201_CREATED)


class QualificationSerializer(Rows):
    class Meta:
        model = Qualification
        fields = ["id", "name", "description"]


class QualificationViewSet(mixins.CreateModelMixin, Reads):
    """What a study can ask of its workers."""

    queryset = Qualification.objects.all()
    serializer_class = QualificationSerializer
