"""The workspace's lists: counted to a bound, and every row reachable from there."""

import re
from html import unescape

import pytest

from annotator.admin.hits import HITAdmin
from generation.admin import lists
from generation.models import Generation, Label
from tests.factories import make_generation, make_group, make_hit, make_hit_type

pytestmark = pytest.mark.django_db

STATEMENTS = "/admin/generation/generation/"


def make_statements(number):
    group = make_group()
    rows = [
        Generation(text=f"heron {place} is at the lake", group=group, label=Label.BENIGN, method="topk")
        for place in range(1, number + 1)
    ]
    return Generation.objects.bulk_create(rows)


def page(client, address=STATEMENTS):
    response = client.get(address)
    assert response.status_code == 200, address
    return response.content.decode()


def shown(html):
    return [int(place) for place in re.findall(r"heron (\d+) is at the lake", html)]


def counted(html):
    found = re.search(r'<p class="counted">(.*?)</p>', html, re.DOTALL)
    return " ".join(re.sub("<.*?>", "", found[1]).split())


def link(html, words):
    found = re.search(rf'<a href="([^"]*)">{words}</a>', html)
    return found and STATEMENTS + unescape(found[1])


def test_a_list_of_up_to_500_rows_is_counted(admin_client):
    make_statements(500)
    html = page(admin_client)
    assert counted(html) == "500 generations"
    assert link(page(admin_client, f"{STATEMENTS}?p=10"), "Older") is None


def test_of_one_row_there_is_one(admin_client):
    make_statements(1)
    assert counted(page(admin_client)) == "1 generation"


def test_every_row_of_a_longer_list_is_reached_by_its_pages_and_the_links_to_older_rows(admin_client):
    make_statements(1203)
    seen, start = [], STATEMENTS
    while start:
        for number in range(1, 11):
            joined = f"{start}{'&' if '?' in start else '?'}p={number}"
            html = page(admin_client, joined)
            seen += shown(html)
            if "more than 500" not in counted(html) and len(shown(html)) < 50:
                break
        start = link(html, "Older")
    assert seen == list(range(1203, 0, -1))
    assert counted(html) == "203 generations from here on"


def test_a_longer_list_says_that_there_is_more_and_leads_back_to_the_newest(admin_client):
    make_statements(501)
    html = page(admin_client, f"{STATEMENTS}?p=10")
    assert counted(html) == "more than 500 generations"
    oldest = page(admin_client, link(html, "Older"))
    assert shown(oldest) == [1]
    assert shown(page(admin_client, link(oldest, "Newest")))[0] == 501


def test_every_page_of_a_longer_list_leads_to_the_rows_after_the_last_number(admin_client):
    make_statements(501)
    links = {link(page(admin_client, f"{STATEMENTS}?p={number}"), "Older") for number in (1, 2, 10)}
    assert len(links) == 1
    assert shown(page(admin_client, links.pop())) == [1]


def heading(html):
    return " ".join(re.sub("<.*?>", "", re.search(r"<h1.*?</h1>", html, re.DOTALL)[0]).split())


def test_a_heading_tells_how_many_only_where_something_was_sought(admin_client):
    make_statements(501)
    assert heading(page(admin_client)) == "Generate chevron_right Generations"
    assert heading(page(admin_client, f"{STATEMENTS}?q=heron")).endswith("more than 500 found (Show all)")
    assert heading(page(admin_client, f"{STATEMENTS}?q=2")).endswith("1 found (Show all)")
    assert "Show all" not in page(admin_client, link(page(admin_client), "Older"))


def test_who_finds_nothing_is_told_that_whole_words_are_sought_and_nothing_to_add(admin_client):
    make_statements(1)
    html = page(admin_client, f"{STATEMENTS}?q=hero")
    assert "Nothing was found for “hero”." in html
    assert "Only whole words are found" in html
    assert "Add generation" not in html
    assert "No generations fit these filters." in page(admin_client, f"{STATEMENTS}?label__exact=toxic")


def test_an_empty_list_offers_to_add_where_that_is_allowed(admin_client):
    assert "There are no generations yet." in page(admin_client)
    assert "There are no panels yet." in page(admin_client, "/admin/annotator/panel/")
    assert "Add panel" in page(admin_client, "/admin/annotator/panel/")


def test_a_filter_stays_on_the_way_to_older_rows(admin_client):
    make_statements(501)
    make_generation("a toxic one by the look of its prompt", label=Label.TOXIC)
    html = page(admin_client, f"{STATEMENTS}?label__exact=benign&p=10")
    assert "label__exact=benign" in link(html, "Older")
    assert shown(page(admin_client, link(html, "Older"))) == [1]


@pytest.mark.parametrize("key", ["x", "-1", "9" * 30, ""])
def test_a_key_that_is_none_breaks_nothing(admin_client, key):
    make_statements(1)
    assert admin_client.get(f"{STATEMENTS}?id__lt={key}", follow=True).status_code == 200


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("heron", [1, 2, 3]),
        ("LAKE heron", [1, 2, 3]),
        ("hero", []),
        ("“at the lake”", [1, 2, 3]),
        ('"lake the"', []),
        ("2 or 3", [2, 3]),
        ("heron -2", [1, 3]),
        ("heron's", []),
        ("((", []),
        ("   ", [1, 2, 3]),
    ],
)
def test_statements_are_searched_by_whole_words(admin_client, words, found):
    make_statements(3)
    html = admin_client.get(STATEMENTS, {"q": words}).content.decode()
    assert sorted(shown(html)) == found


def test_the_field_says_how_it_searches(admin_client):
    assert "Whole words" in page(admin_client)


def test_an_action_is_not_offered_for_more_rows_than_were_counted(admin_client, monkeypatch):
    monkeypatch.setattr(HITAdmin, "list_per_page", 1)
    study = make_hit_type()
    for _ in range(3):
        make_hit(hit_type=study)
    assert "Select all 3 HITs" in page(admin_client, "/admin/annotator/hit/")
    monkeypatch.setattr(lists, "COUNTED_UP_TO", 2)
    html = page(admin_client, "/admin/annotator/hit/")
    assert "across all pages" not in html
    assert "0 of 1 selected" in html


def test_what_many_rows_need_is_not_deleted_and_they_are_told_in_number(admin_client):
    make_statements(501)
    html = page(admin_client, f"/admin/generation/targetgroup/{make_group().pk}/delete/")
    assert "more than 50 generations" in html
    assert shown(html) == []
    admin_client.post(f"/admin/generation/targetgroup/{make_group().pk}/delete/", {"post": "yes"})
    assert make_group().generations.count() == 501
