"""Tables on the page of what their rows belong to."""

from unfold.admin import TabularInline


class ReadOnlyInline(TabularInline):
    extra = 0
    hide_title = True
    can_delete = False

    def has_add_permission(self, request, obj=None) -> bool:
        return False

    def has_change_permission(self, request, obj=None) -> bool:
        return False
