"""Users and roles in the workspace's own look."""

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from knox import admin as knox_admin
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

admin.site.unregister(User)
admin.site.unregister(Group)
admin.site.unregister(knox_admin.models.AuthToken)  # the page “API” has them: each user their own


@admin.register(User)
class StaffAdmin(UserAdmin, ModelAdmin):
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm


@admin.register(Group)
class RoleAdmin(GroupAdmin, ModelAdmin):
    """Groups hold the roles."""
