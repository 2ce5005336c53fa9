"""Who may do what: staff, each by Django's permissions of the model. Annotators are no users and get nothing."""

from rest_framework.permissions import BasePermission

BY_METHOD = {"GET": "view", "HEAD": "view", "POST": "add", "PUT": "change", "PATCH": "change", "DELETE": "delete"}


class ByModel(BasePermission):
    """Staff who have all the permissions that the view names for its action, or else those of its model."""

    message = "Your role does not allow this. Ask an admin for it."

    def has_permission(self, request, view) -> bool:
        user = request.user
        return bool(user and user.is_active and user.is_staff and user.has_perms(needed(request.method, view)))


def needed(method: str, view) -> list[str]:
    """The permissions that a request needs; none for a method that the address does not have, which is refused."""
    action = getattr(view, "action", None)
    if action in view.needs:
        return view.needs[action]
    if action is None or method not in BY_METHOD:
        return []
    options = view.queryset.model._meta
    return [f"{options.app_label}.{BY_METHOD[method]}_{options.model_name}"]
