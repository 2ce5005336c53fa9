from django.contrib import admin
from django.urls import include, path

from analysis.views import exports, reports
from annotator.admin.demographics import demographics
from config.api.pages import own_tokens

admin.site.index_title = "Overview"

urlpatterns = [
    path("admin/analyse/<slug:page>/", admin.site.admin_view(reports.report_page), name="report"),
    path("admin/analyse/<slug:page>/<slug:report>/", admin.site.admin_view(reports.report_part), name="report_part"),
    path(
        "admin/analyse/<slug:page>/<slug:report>/work-out/",
        admin.site.admin_view(reports.work_out_report),
        name="work_out_report",
    ),
    path(
        "admin/analyse/<slug:page>/<slug:report>.<slug:ending>",
        admin.site.admin_view(reports.report_file),
        name="report_file",
    ),
    path(
        "admin/analyse/<slug:page>/<slug:report>/<slug:section>.csv",
        admin.site.admin_view(reports.report_table),
        name="report_table",
    ),
    path("admin/demographics/", admin.site.admin_view(demographics), name="demographics"),
    path("admin/export/", admin.site.admin_view(exports.export), name="export"),
    path("admin/export/<str:name>.<str:file_format>", admin.site.admin_view(exports.download), name="download"),
    path("admin/api/", admin.site.admin_view(own_tokens), name="tokens"),
    path("admin/", admin.site.urls),
    path("api/", include("config.api.urls")),
    path("", include("annotator.urls")),
]

handler400 = "config.api.problems.bad_request"
handler403 = "config.refusals.permission_denied"
handler404 = "config.api.problems.not_found"
handler500 = "config.api.problems.server_error"
