"""Users and roles in the workspace's own look."""

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from knox import admin as knox_admin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from generation.admin import WorkspaceAdmin

admin.site.unregister(User)
admin.site.unregister(Group)
admin.site.unregister(knox_admin.models.AuthToken)  # the page “API” has them: each user their own


class TickedPermissions(WorkspaceAdmin):
    """Roles and permissions to tick; Django's two lists side by side are wider than a page."""

    def formfield_for_manytomany(self, db_field, request, **kwargs):
        return super().formfield_for_manytomany(
            db_field, request, **{**kwargs, "widget": UnfoldAdminCheckboxSelectMultipleWidget}
        )


@admin.register(User)
class StaffAdmin(UserAdmin, TickedPermissions):
    filter_horizontal = ()
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    ordering = ["username"]
    fieldsets = [
        (None, {"fields": ["username", "password"]}),
        ("About", {"fields": ["first_name", "last_name", "email", "last_login", "date_joined"]}),
        ("Access", {"fields": ["is_active", "is_staff", "is_superuser", "groups"]}),
        ("Single permissions, beside those of the groups", {"fields": ["user_permissions"], "classes": ["collapse"]}),
    ]
    readonly_fields = ["last_login", "date_joined"]


@admin.register(Group)
class RoleAdmin(GroupAdmin, TickedPermissions):
    """Groups hold the roles."""

    filter_horizontal = ()
    ordering = ["name"]
