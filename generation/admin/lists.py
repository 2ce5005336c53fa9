"""The workspace's lists: a page costs the same with a thousand rows as with a million.

Nothing is counted beyond a bound, and nothing is skipped over: up to the bound a list has pages with numbers, and
from there a link leads on to the older rows by their key.
"""

from django.contrib.admin.views.main import ORDER_VAR, PAGE_VAR
from django.core.paginator import Paginator
from django.db.models import PROTECT, QuerySet
from django.utils.functional import cached_property
from unfold.admin import ModelAdmin
from unfold.views import ChangeList

COUNTED_UP_TO = 500
A_PAGE = 50
LISTED_UP_TO = 50
"""So many rows that keep another one from being deleted are named one by one."""
NEWEST_FIRST = ["-pk"]


class BoundedPaginator(Paginator):
    """Pages of the first rows; ``has_more`` tells that these are not all."""

    template_name = "admin/_turn_pages.html"

    @cached_property
    def count(self) -> int:
        return min(self._counted, COUNTED_UP_TO)

    @cached_property
    def has_more(self) -> bool:
        return self._counted > COUNTED_UP_TO

    @property
    def last_counted(self) -> int:
        """The key of the last row that has a page with a number, of a list in the order of keys that has more."""
        return self._keys[COUNTED_UP_TO - 1]

    @cached_property
    def _counted(self) -> int:
        in_key_order = list(self.object_list.query.order_by[:1]) == NEWEST_FIRST
        return len(self._keys) if in_key_order else count_up_to(COUNTED_UP_TO + 1, self.object_list)

    @cached_property
    def _keys(self) -> list[int]:
        """Those of the first rows: they are counted and told apart from the older ones in one query."""
        return list(self.object_list.values_list("pk", flat=True)[: COUNTED_UP_TO + 1])


def count_up_to(most: int, rows: QuerySet) -> int:
    """How many rows there are, ``most`` if there are more."""
    return rows.order_by().values("pk")[:most].count()


def up_to_the_bound(rows: QuerySet) -> str:
    """How many rows there are, in words from the bound on."""
    number = count_up_to(COUNTED_UP_TO + 1, rows)
    return f"{number:,}" if number <= COUNTED_UP_TO else f"more than {COUNTED_UP_TO:,}"


class WorkspaceChangeList(ChangeList):
    """A list with the way on from its numbered pages, and back."""

    def get_results(self, request) -> None:
        """As Django's; the count beside the title, which would stop at the bound, is ours (config/wayfinding.py)."""
        super().get_results(request)
        self.full_result_count = self.result_count

    @property
    def is_narrowed(self) -> bool:
        """Whether somebody searched or filtered, so that rows are left out."""
        return bool(self.query or set(self.get_filters_params()) - {self.before})

    @property
    def how_many(self) -> str:
        """How many rows there are, in words from the bound on."""
        return f"{'more than ' if self.paginator.has_more else ''}{self.result_count:,}"

    @cached_property
    def older_link(self) -> str | None:
        """Where the rows after the last counted one are, in the order of keys."""
        in_key_order = self.model_admin.ordering == NEWEST_FIRST and ORDER_VAR not in self.params
        if not (in_key_order and self.paginator.has_more):
            return None
        return self.get_query_string({self.before: self.paginator.last_counted}, remove=[PAGE_VAR])

    @property
    def newest_link(self) -> str | None:
        return self.get_query_string(remove=[self.before]) if self.before in self.params else None

    @property
    def before(self) -> str:
        return f"{self.lookup_opts.pk.name}__lt"


class WorkspaceAdmin(ModelAdmin):
    """A list that stays quick however many rows there are, newest first."""

    paginator = BoundedPaginator
    list_per_page = A_PAGE
    show_full_result_count = False
    ordering = NEWEST_FIRST
    how_it_searches = ""
    """A sentence for those who found nothing, where it is not plain what is found."""

    def get_changelist(self, request, **kwargs):
        return WorkspaceChangeList

    def get_deleted_objects(self, objs, request):
        """As Django, but many rows that keep these from being deleted are told in number, not listed."""
        protecting = list(self._many_that_protect(objs))
        return ([], {}, set(), protecting) if protecting else super().get_deleted_objects(objs, request)

    def _many_that_protect(self, objs):
        for relation in self.opts.related_objects:
            if relation.on_delete is PROTECT:
                rows = relation.related_model._base_manager.filter(**{f"{relation.field.name}__in": objs})
                if count_up_to(LISTED_UP_TO + 1, rows) > LISTED_UP_TO:
                    yield f"more than {LISTED_UP_TO} {relation.related_model._meta.verbose_name_plural}"
