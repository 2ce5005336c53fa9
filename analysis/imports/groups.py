"""Target groups as files name them, and making those that are not known here yet."""

import re

from analysis.imports.faults import BadCell
from analysis.imports.wording import option
from analysis.imports.work import Work
from generation.models import TargetGroup

LONGEST_SLUG = 50

#: What published files call a group by another name than its slug in the ``train`` table.
ALIASES = {
    "mental_disability": "mental_dis", "mental_disabilities": "mental_dis", "mental_disabilities_folks": "mental_dis",
    "folks_with_mental_disabilities": "mental_dis", "physical_disability": "physical_dis",
    "physical_disabilities": "physical_dis", "folks_with_physical_disabilities": "physical_dis",
    "physical_disabilities_folks": "physical_dis", "black_african_american": "black",
    "latino_hispanic": "latino", "native_american_indigenous": "native_american", "middle_eastern": "middle_east",
}  # fmt: skip


def slug_of(name: str) -> str:
    """What stands for a group's name as a file writes it; empty if nothing can.

    >>> [slug_of(name) for name in ("women", "black/african-american folks", "LGBTQ+ folks", "Mental disability")]
    ['women', 'black', 'lgbtq', 'mental_dis']
    """
    plain = re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_")
    if plain in ALIASES:
        return ALIASES[plain]
    plain = plain.removesuffix("_folks").removesuffix("_people")
    return ALIASES.get(plain, plain)


class Groups:
    """The groups by what a file calls them."""

    def __init__(self, work: Work):
        self._work = work
        self._ids = dict(TargetGroup.objects.values_list("slug", "pk"))
        self._found: dict[str, int] = {}

    def id_of(self, column: str, name: str) -> int:
        """The group's id; makes it if that was asked for, else raises ``BadCell``."""
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = self._look_up(column, name)
        return found

    def _look_up(self, column: str, name: str) -> int:
        slug = slug_of(name or self._work.options.group)
        if not slug:
            said = f"The row says no group. Fill it in, or give {option('group')} for all such rows."
            raise BadCell(column, name, said)
        if slug not in self._ids:
            self._ids[slug] = self._make(column, name, slug)
        return self._ids[slug]

    def _make(self, column: str, name: str, slug: str) -> int:
        if len(slug) > LONGEST_SLUG:
            raise BadCell(column, name, f"A group's name has at most {LONGEST_SLUG} characters.")
        if not self._work.options.make_groups:
            self._work.unknown_groups[slug] = None
            raise BadCell(column, name, f"The group {slug} is not known. Make it, or tick {option('make_groups')}.")
        spoken = slug.replace("_", " ")
        group, is_new = TargetGroup.objects.get_or_create(
            slug=slug, defaults={"name": spoken.capitalize(), "words": f"{spoken} people"}
        )
        if is_new:
            self._work.stored["groups"] += 1
            self._work.notes.append(
                f"The group {slug} was made: on its page, say how it is named on the task page, and by which words."
            )
        return group.pk
