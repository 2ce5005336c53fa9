"""All of Humanval's addresses, and the floor's."""

from django.urls import include, path

from benchmarks.web.views import floor

urlpatterns = [path("floor/", floor), path("", include("config.urls"))]

handler400 = "annotator.views.bad_request"
handler404 = "annotator.views.not_found"
