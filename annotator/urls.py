from django.urls import path

from annotator.views import care, entry, pay, work

app_name = "annotator"

urlpatterns = [
    path("", entry.home, name="home"),
    path("invite/<str:token>/", entry.invitation, name="invitation"),
    path("join/<str:token>/", entry.join, name="join"),
    path("leave/", entry.leave, name="leave"),
    path("consent/", care.consent, name="consent"),
    path("declined/", care.declined, name="declined"),
    path("withdraw/", care.withdraw, name="withdraw"),
    path("preferences/", care.preferences, name="preferences"),
    path("help/", care.help_lines, name="help"),
    path("survey/", care.survey, name="survey"),
    path("debrief/", care.debrief, name="debrief"),
    path("work/", pay.own_work, name="own_work"),
    path("study/<int:hit_type_id>/", work.preview, name="preview"),
    path("study/<int:hit_type_id>/accept/", work.accept, name="accept"),
    path("study/<int:hit_type_id>/break/", work.take_break, name="break"),
    path("task/<uuid:key>/", work.task, name="task"),
    path("task/<uuid:key>/draft/", work.save_draft, name="draft"),
    path("task/<uuid:key>/return/", work.return_task, name="return"),
    path("stop/", work.stop, name="stop"),
]
