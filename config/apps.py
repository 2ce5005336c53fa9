from django.apps import AppConfig, apps
from django.db.models.signals import post_migrate


class HumanvalConfig(AppConfig):
    name = "config"
    verbose_name = "Humanval"

    def ready(self) -> None:
        import config.wayfinding  # noqa: F401 - puts its tag in the place of django-unfold's
        from config.roles import give_permissions

        # After the permissions of our own apps were made, and once a migration.
        post_migrate.connect(give_permissions, sender=apps.get_app_config("auth"))
