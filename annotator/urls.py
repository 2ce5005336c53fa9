from django.urls import path

from annotator import views

app_name = "annotator"

urlpatterns = [
    path("", views.home, name="home"),
    path("invite/<str:token>/", views.invitation, name="invitation"),
    path("consent/", views.consent, name="consent"),
    path("declined/", views.declined, name="declined"),
    path("accept/", views.accept, name="accept_any"),
    path("accept/<int:hit_type_id>/", views.accept, name="accept"),
    path("task/<uuid:key>/", views.task, name="task"),
    path("task/<uuid:key>/return/", views.return_task, name="return"),
    path("stop/", views.stop, name="stop"),
]
