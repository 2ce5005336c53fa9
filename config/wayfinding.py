"""The way to a page in the sidebar's words, in the place of django-unfold's, which has no setting for it.

Registered under the name of its tag in its own library, so that its templates stay as they are.
"""

from django.template import Context
from django.template.loader import render_to_string
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from unfold.templatetags.unfold import register


@register.simple_tag(takes_context=True, name="header_title")
def where_one_is(context: Context) -> str:
    """The way to the page, and after a search how much was found.

    What has no entry in the sidebar begins with its own title.
    """
    way = _way_by_the_sidebar(context.get("sidebar_navigation") or [])
    thing = context.get("original") or context.get("object")
    title = context.get("content_title") or context.get("title")
    if thing and not isinstance(thing, str):
        way.append({"title": thing, "link": _page_of(thing)})
    elif title and (not way or ("cl" not in context and title != way[-1]["title"])):
        way.append({"title": title})
    return format_html(
        "{}{}", render_to_string("unfold/helpers/header_title.html", {"parts": way}), _found(context.get("cl"))
    )


def _found(changes) -> str:
    """How much was found, of a list in which somebody searched or filtered."""
    if not getattr(changes, "is_narrowed", False):
        return ""
    all_of_it = "?_popup=1" if changes.is_popup else "?"
    return format_html('<span class="found">{} found (<a href="{}">Show all</a>)</span>', changes.how_many, all_of_it)


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
