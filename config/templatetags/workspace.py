"""What the workspace's templates need beyond django-unfold's tags."""

from django.template import Context, Library
from django.urls import NoReverseMatch, reverse

register = Library()


@register.inclusion_tag("unfold/helpers/header_title.html", takes_context=True)
def where_one_is(context: Context) -> dict:
    """The way to the page, by the sidebar's titles; what has no entry there begins with its own title."""
    way = _way_by_the_sidebar(context.get("sidebar_navigation") or [])
    thing = context.get("original") or context.get("object")
    title = context.get("content_title") or context.get("title")
    if thing and not isinstance(thing, str):
        way.append({"title": thing, "link": _page_of(thing)})
    elif title and (not way or ("cl" not in context and title != way[-1]["title"])):
        way.append({"title": title})
    return {"parts": way}


def _way_by_the_sidebar(navigation: list[dict]) -> list[dict]:
    for section in navigation:
        for entry in section["items"]:
            if entry["active"]:
                above = [{"title": section["title"]}] if section.get("title") else []
                return [*above, {"title": entry["title"], "link": entry["link"]}]
    return []


def _page_of(thing) -> str | None:
    try:
        return reverse(f"admin:{thing._meta.app_label}_{thing._meta.model_name}_change", args=[thing.pk])
    except NoReverseMatch:
        return None
