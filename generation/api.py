"""The API's view of runs."""

from rest_framework import serializers, viewsets
from rest_framework.permissions import DjangoModelPermissions

from generation.models import GenerationRun


class MayView(DjangoModelPermissions):
    """Reading takes the permission to view, too; Django REST framework asks for it on writing only."""

    perms_map = {**DjangoModelPermissions.perms_map, "GET": ["%(app_label)s.view_%(model_name)s"]}


class RunSerializer(serializers.ModelSerializer):
    class Meta:
        model = GenerationRun
        fields = [
            "id", "state", "method", "parameters", "language_model", "classifier", "precision", "environment", "seed",
            "failure", "created_at", "started_at", "ended_at",
        ]  # fmt: skip


class RunWithProgressSerializer(RunSerializer):
    progress = serializers.DictField(read_only=True)

    class Meta(RunSerializer.Meta):
        fields = [*RunSerializer.Meta.fields, "progress"]


class RunViewSet(viewsets.ReadOnlyModelViewSet):
    """Runs, newest first; a single one with its progress."""

    queryset = GenerationRun.objects.all()
    permission_classes = [MayView]

    def get_serializer_class(self):
        return RunWithProgressSerializer if self.action == "retrieve" else RunSerializer
