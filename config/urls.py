from django.contrib import admin
from django.urls import include, path

from analysis import views as analysis
from annotator.admin.demographics import demographics
from config.api.pages import own_tokens

admin.site.index_title = "Overview"

urlpatterns = [
    path("admin/agreement/", admin.site.admin_view(analysis.agreement), name="agreement"),
    path(
        "admin/agreement/<int:hit_type_id>/work-out/",
        admin.site.admin_view(analysis.work_out_agreement),
        name="work_out_agreement",
    ),
    path("admin/demographics/", admin.site.admin_view(demographics), name="demographics"),
    path("admin/export/", admin.site.admin_view(analysis.export), name="export"),
    path("admin/export/<str:name>.<str:file_format>", admin.site.admin_view(analysis.download), name="download"),
    path("admin/api/", admin.site.admin_view(own_tokens), name="tokens"),
    path("admin/", admin.site.urls),
    path("api/", include("config.api.urls")),
    path("", include("annotator.urls")),
]

handler400 = "config.api.problems.bad_request"
handler403 = "config.refusals.permission_denied"
handler404 = "config.api.problems.not_found"
handler500 = "config.api.problems.server_error"
