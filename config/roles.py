"""The roles: an admin may do everything, a researcher runs studies, an annotator is no user at all.

Annotators come in by an invitation and are known to ``annotator`` only; users are staff.
"""

RESEARCHER = "researcher"

RESEARCHER_MAY = {
    "generation": {
        "targetgroup": ["view"],
        "demonstration": ["view", "add", "change"],
        "generationrun": ["view", "add", "change"],
        "generation": ["view"],
        "replay": ["view", "add"],
    },
    "annotator": {
        "hittype": ["view", "add", "change"],
        "hit": ["view", "change"],
        "assignment": ["view", "change"],
        "annotation": ["view"],
        "worker": ["view", "change"],
        "invitation": ["view", "add", "change"],
        "consentform": ["view", "add", "change"],
        "helpline": ["view", "add", "change", "delete"],
        "qualification": ["view", "add", "change"],
        "payment": ["view", "add"],
        "payout": ["view", "add"],
        "grant": ["view", "add", "change", "delete"],
        "testresult": ["view"],
        "panel": ["view", "add", "change"],
        "knownanswers": ["view", "add", "change"],
    },
}


def give_permissions(**_) -> None:
    """Make the researchers' group have exactly the permissions above; runs after every migration."""
    from django.contrib.auth.models import Group, Permission

    researchers, _ = Group.objects.get_or_create(name=RESEARCHER)
    codenames = {
        (app, f"{action}_{model}")
        for app, models in RESEARCHER_MAY.items()
        for model, actions in models.items()
        for action in actions
    }
    permissions = Permission.objects.filter(content_type__app_label__in=RESEARCHER_MAY).select_related("content_type")
    researchers.permissions.set(
        permission
        for permission in permissions
        if (permission.content_type.app_label, permission.codename) in codenames
    )
