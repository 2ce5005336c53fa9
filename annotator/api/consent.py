"""Consent forms: what people are told and agree to."""

from drf_spectacular.utils import extend_schema
from rest_framework import mixins
from rest_framework.decorators import action
from rest_framework.response import Response

from annotator import consenting
from annotator.models import ConsentForm
from generation.api.fields import Rows
from generation.api.frame import Conflict, Reads, refusals


class ConsentFormSerializer(Rows):
    class Meta:
        model = ConsentForm
        fields = ["id", "version", *consenting.TEXTS, "published_at"]
        read_only_fields = ["id", "published_at"]

    def validate(self, texts: dict) -> dict:
        if self.instance and self.instance.published_at:
            raise Conflict(
                f"Version {self.instance.version} is published and stays as people agreed to it. "
                "Make a new version and change that."
            )
        return texts


class ConsentFormViewSet(mixins.CreateModelMixin, mixins.UpdateModelMixin, Reads):
    """The versions of the form; the newest published one is in force."""

    queryset = ConsentForm.objects.all()
    serializer_class = ConsentFormSerializer
    http_method_names = ["get", "head", "post", "patch"]
    needs = {
        "publish": ["annotator.change_consentform"],
        "new_version": ["annotator.add_consentform"],
    }

    @extend_schema(request=None, responses=ConsentFormSerializer)
    @action(detail=True, methods=["post"])
    def publish(self, request, pk=None) -> Response:
        """Put a form in force from now on, so that everybody is asked anew."""
        with refusals(conflict=(consenting.CannotPublish,)):
            form = consenting.publish_form(form=self.get_object())
        return Response(self.get_serializer(form).data)

    @extend_schema(request=None, responses=ConsentFormSerializer)
    @action(detail=True, methods=["post"], url_path="new-version")
    def new_version(self, request, pk=None) -> Response:
        """Copy a form's texts into the next version; if one waits to be published already, that is returned."""
        form = consenting.make_new_version(form=self.get_object())
        return Response(self.get_serializer(form).data)
