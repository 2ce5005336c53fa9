from django.contrib import admin
from django.urls import include, path
from rest_framework.routers import SimpleRouter

from analysis import views as analysis
from annotator.admin.demographics import demographics
from generation.api import RunViewSet

admin.site.index_title = "Overview"

api = SimpleRouter()
api.register("runs", RunViewSet)

urlpatterns = [
    path("admin/agreement/", admin.site.admin_view(analysis.agreement), name="agreement"),
    path("admin/demographics/", admin.site.admin_view(demographics), name="demographics"),
    path("admin/export/", admin.site.admin_view(analysis.export), name="export"),
    path("admin/export/<str:name>.csv", admin.site.admin_view(analysis.download), name="download"),
    path("admin/", admin.site.urls),
    path("api/", include(api.urls)),
    path("", include("annotator.urls")),
]

handler400 = "annotator.views.bad_request"
handler404 = "annotator.views.not_found"
