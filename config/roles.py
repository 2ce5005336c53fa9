"""The roles: an admin may do everything, a researcher runs studies, an annotator is no user at all.

Filling toxic sets of demonstrations takes a permission beside the researcher's, which a group of its own gives.

Annotators come in by an invitation and are known to ``annotator`` only; users are staff.
"""

RESEARCHER = "researcher"
TOXIC_SETS = "toxic sets"

RESEARCHER_MAY = {
    "generation": {
        "targetgroup": ["view", "add", "change"],
        "demonstration": ["view", "add", "change"],
        "generationrun": ["view", "add", "change"],
        "generation": ["view"],
        "reading": ["view", "add"],
        "replay": ["view", "add"],
        "trial": ["view", "add"],
        "response": ["view", "change"],
        "auditentry": ["view"],
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
    "analysis": {
        "dataimport": ["view", "add"],
        "humanlabel": ["view"],
        "humanvalset": ["view", "add", "change"],
        "trainedclassifier": ["view", "add", "change"],
        "evaluationset": ["view", "add"],
        "evaluation": ["view", "add"],
    },
}


GROUPS = {
    RESEARCHER: {
        (app, f"{action}_{model}")
        for app, models in RESEARCHER_MAY.items()
        for model, actions in models.items()
        for action in actions
    },
    TOXIC_SETS: {("generation", "fill_toxic_set")},
}
"""What the members of each group may do, as (application, permission)."""


def give_permissions(**_) -> None:
    """Make each group of the roles have exactly the permissions above; runs after every migration."""
    from django.contrib.auth.models import Group, Permission

    apps = {app for codenames in GROUPS.values() for app, _ in codenames}
    permissions = list(Permission.objects.filter(content_type__app_label__in=apps).select_related("content_type"))
    for name, codenames in GROUPS.items():
        group, _ = Group.objects.get_or_create(name=name)
        group.permissions.set(
            permission
            for permission in permissions
            if (permission.content_type.app_label, permission.codename) in codenames
        )
