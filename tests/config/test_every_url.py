"""Every address of the project, asked for as each role: nobody gets more than is written down here.

A new address fails here until its row says what each role may see.
"""

import re
from decimal import Decimal

import pytest
from django.contrib.auth.models import Group, User
from django.contrib.contenttypes.models import ContentType
from django.test import Client
from django.urls import get_resolver, reverse

from analysis.models import DataImport, HumanvalSet
from annotator import inviting, paying
from annotator.models import HelpLine, KnownAnswers, Panel, Qualification, TestResult
from config.roles import RESEARCHER
from generation import auditing
from generation.models import Demonstration
from tests.factories import (
    accept,
    answers,
    consenting_worker,
    make_evaluation,
    make_evaluation_set,
    make_generation,
    make_group,
    make_hit,
    make_reading,
    make_responses,
    make_run,
    make_searched_generation,
    make_trained_classifier,
)

pytestmark = pytest.mark.django_db

ROLES = ("anonymous", "annotator", "researcher", "admin")
LOG_IN = "log in"  # a redirect to the workspace's log-in page

# What GET answers to: anonymous, annotator, researcher, admin.
PAGES = {
    "annotator:home": (200, 200, 200, 200),
    "annotator:invitation": (302, 302, 302, 302),
    "annotator:join": (200, 200, 200, 200),
    "annotator:consent": (403, 200, 403, 403),
    "annotator:declined": (200, 200, 200, 200),
    "annotator:withdraw": (403, 200, 403, 403),
    "annotator:preferences": (403, 200, 403, 403),
    "annotator:help": (200, 200, 200, 200),
    "annotator:own_work": (403, 200, 403, 403),
    "annotator:survey": (403, 200, 403, 403),
    "annotator:debrief": (403, 200, 403, 403),
    "annotator:preview": (403, 200, 403, 403),
    "annotator:accept": (405, 405, 405, 405),
    "annotator:break": (403, 200, 403, 403),
    "annotator:task": (403, 200, 403, 403),
    "annotator:draft": (405, 405, 405, 405),
    "annotator:return": (405, 405, 405, 405),
    "annotator:stop": (405, 405, 405, 405),
    "annotator:leave": (405, 405, 405, 405),
    "report": (LOG_IN, LOG_IN, 200, 200),
    "report_part": (LOG_IN, LOG_IN, 302, 302),  # to the page that it is a part of
    "work_out_report": (LOG_IN, LOG_IN, 405, 405),
    "report_file": (LOG_IN, LOG_IN, 302, 302),  # to the page, which has it worked out first
    "report_table": (LOG_IN, LOG_IN, 404, 404),
    "demographics": (LOG_IN, LOG_IN, 200, 200),
    "export": (LOG_IN, LOG_IN, 200, 200),
    "download": (LOG_IN, LOG_IN, 200, 200),
    "tokens": (LOG_IN, LOG_IN, 200, 200),
    "admin:index": (LOG_IN, LOG_IN, 200, 200),
    "admin:app_list": (LOG_IN, LOG_IN, 200, 200),
    "admin:search": (LOG_IN, LOG_IN, 200, 200),
    "admin:login": (200, 200, 302, 302),
    "admin:logout": (302, 302, 405, 405),
    "admin:password_change": (LOG_IN, LOG_IN, 200, 200),
    "admin:password_change_done": (LOG_IN, LOG_IN, 200, 200),
    "admin:autocomplete": (LOG_IN, LOG_IN, 403, 403),  # without what a form asks it for
    "admin:jsi18n": (LOG_IN, LOG_IN, 200, 200),
    "admin:view_on_site": (LOG_IN, LOG_IN, 404, 404),  # nothing of ours has a page outside of the admin
    "admin:auth_user_password_change": (LOG_IN, LOG_IN, 403, 200),
    "admin:annotator_review": (LOG_IN, LOG_IN, 200, 200),
    "admin:consent_publish": (LOG_IN, LOG_IN, 405, 405),
    "admin:consent_new_version": (LOG_IN, LOG_IN, 405, 405),
    "admin:consent_preview": (LOG_IN, LOG_IN, 200, 200),
    "admin:annotator_top_up": (LOG_IN, LOG_IN, 405, 405),
    "admin:annotator_choose": (LOG_IN, LOG_IN, 200, 200),
    "admin:annotator_watch": (LOG_IN, LOG_IN, 200, 200),
    "admin:annotator_stop": (LOG_IN, LOG_IN, 200, 200),
    "admin:annotator_go_on": (LOG_IN, LOG_IN, 405, 405),
    "admin:annotator_extend": (LOG_IN, LOG_IN, 200, 200),
    "admin:annotator_make_payout": (LOG_IN, LOG_IN, 405, 405),
    "admin:annotator_pay_file": (LOG_IN, LOG_IN, 200, 200),
    "admin:generation_run_progress": (LOG_IN, LOG_IN, 200, 200),
    "admin:generation_run_outlook": (LOG_IN, LOG_IN, 200, 200),
    "admin:generation_run_samples": (LOG_IN, LOG_IN, 200, 200),
    "admin:generation_run_recipe": (LOG_IN, LOG_IN, 200, 200),
    "admin:generation_run_repeat": (LOG_IN, LOG_IN, 405, 405),
    "admin:generation_run_pause": (LOG_IN, LOG_IN, 405, 405),
    "admin:generation_run_resume": (LOG_IN, LOG_IN, 405, 405),
    "admin:generation_run_cancel": (LOG_IN, LOG_IN, 405, 405),
    "admin:generation_read_progress": (LOG_IN, LOG_IN, 200, 200),
    "admin:generation_read_stop": (LOG_IN, LOG_IN, 405, 405),
    "admin:generation_replay": (LOG_IN, LOG_IN, 200, 200),
    "admin:generation_sets": (LOG_IN, LOG_IN, 200, 200),
    "admin:generation_set": (LOG_IN, LOG_IN, 200, 200),
    "admin:generation_set_history": (LOG_IN, LOG_IN, 200, 200),
    "admin:generation_trial": (LOG_IN, LOG_IN, 200, 200),
    "admin:generation_response": (LOG_IN, LOG_IN, 405, 405),
    "admin:analysis_import_progress": (LOG_IN, LOG_IN, 200, 200),
    "admin:analysis_import_stop": (LOG_IN, LOG_IN, 405, 405),
    "admin:analysis_import_faults": (LOG_IN, LOG_IN, 200, 200),
    "admin:analysis_humanval_progress": (LOG_IN, LOG_IN, 200, 200),
    "admin:analysis_humanval_give_up": (LOG_IN, LOG_IN, 405, 405),
    "admin:analysis_humanval_publish": (LOG_IN, LOG_IN, 405, 405),
    "admin:analysis_humanval_freeze": (LOG_IN, LOG_IN, 405, 405),
    "admin:analysis_humanval_new_version": (LOG_IN, LOG_IN, 405, 405),
    "admin:analysis_humanval_compare": (LOG_IN, LOG_IN, 405, 405),
    "admin:analysis_humanval_prove": (LOG_IN, LOG_IN, 405, 405),
    "admin:analysis_humanval_report": (LOG_IN, LOG_IN, 200, 200),
    "admin:analysis_humanval_statements": (LOG_IN, LOG_IN, 200, 200),
    "admin:analysis_humanval_removed": (LOG_IN, LOG_IN, 200, 200),
    "admin:analysis_training_preview": (LOG_IN, LOG_IN, 200, 200),
    "admin:analysis_training_progress": (LOG_IN, LOG_IN, 200, 200),
    "admin:analysis_training_evaluations": (LOG_IN, LOG_IN, 200, 200),
    "admin:analysis_training_stop": (LOG_IN, LOG_IN, 405, 405),
    "admin:analysis_training_resume": (LOG_IN, LOG_IN, 405, 405),
    "admin:analysis_training_score": (LOG_IN, LOG_IN, 405, 405),
    "admin:analysis_evaluating_progress": (LOG_IN, LOG_IN, 200, 200),
    "admin:analysis_evaluating_stop": (LOG_IN, LOG_IN, 405, 405),
    "admin:analysis_test_set_evaluations": (LOG_IN, LOG_IN, 200, 200),
    "admin/(?P<url>.*)$": (LOG_IN, LOG_IN, 404, 404),
}

# What POST answers where it does something: again anonymous, annotator, researcher, admin.
ACTS = {
    "annotator:join": (422, 422, 422, 422),  # without the ticket that the page carries
    "annotator:consent": (403, 302, 403, 403),
    "annotator:withdraw": (403, 422, 403, 403),  # nothing is chosen
    "annotator:preferences": (403, 302, 403, 403),
    "annotator:survey": (403, 302, 403, 403),
    "annotator:accept": (403, 302, 403, 403),
    "annotator:task": (403, 302, 403, 403),
    "annotator:draft": (403, 204, 403, 403),
    "annotator:return": (403, 302, 403, 403),
    "annotator:stop": (403, 302, 403, 403),
    "annotator:leave": (302, 302, 302, 302),
    "tokens": (LOG_IN, LOG_IN, 422, 422),  # for no time
    "work_out_report": (LOG_IN, LOG_IN, 302, 302),
    "admin:annotator_review": (LOG_IN, LOG_IN, 422, 422),  # nothing is chosen
    "admin:consent_publish": (LOG_IN, LOG_IN, 302, 302),
    "admin:consent_new_version": (LOG_IN, LOG_IN, 302, 302),
    "admin:annotator_top_up": (LOG_IN, LOG_IN, 302, 302),
    "admin:annotator_choose": (LOG_IN, LOG_IN, 422, 422),  # nothing is asked for
    "admin:annotator_stop": (LOG_IN, LOG_IN, 302, 302),
    "admin:annotator_go_on": (LOG_IN, LOG_IN, 302, 302),
    "admin:annotator_extend": (LOG_IN, LOG_IN, 422, 422),  # by nothing
    "admin:annotator_make_payout": (LOG_IN, LOG_IN, 302, 302),
    "admin:generation_run_repeat": (LOG_IN, LOG_IN, 302, 302),
    "admin:generation_run_pause": (LOG_IN, LOG_IN, 302, 302),
    "admin:generation_run_resume": (LOG_IN, LOG_IN, 302, 302),
    "admin:generation_run_cancel": (LOG_IN, LOG_IN, 302, 302),
    "admin:generation_read_stop": (LOG_IN, LOG_IN, 302, 302),
    "admin:generation_replay": (LOG_IN, LOG_IN, 302, 302),
    "admin:analysis_import_stop": (LOG_IN, LOG_IN, 302, 302),
    "admin:analysis_humanval_give_up": (LOG_IN, LOG_IN, 302, 302),
    "admin:analysis_humanval_publish": (LOG_IN, LOG_IN, 422, 422),  # without terms
    "admin:analysis_humanval_freeze": (LOG_IN, LOG_IN, 302, 302),
    "admin:analysis_humanval_new_version": (LOG_IN, LOG_IN, 302, 302),
    "admin:analysis_humanval_compare": (LOG_IN, LOG_IN, 302, 302),
    "admin:analysis_humanval_prove": (LOG_IN, LOG_IN, 302, 302),
    "admin:analysis_training_stop": (LOG_IN, LOG_IN, 302, 302),
    "admin:analysis_training_resume": (LOG_IN, LOG_IN, 302, 302),
    "admin:analysis_training_score": (LOG_IN, LOG_IN, 302, 302),
    "admin:analysis_evaluating_stop": (LOG_IN, LOG_IN, 302, 302),
    "admin:generation_set": (LOG_IN, LOG_IN, 422, 422),  # nothing is chosen
    "admin:generation_trial": (LOG_IN, LOG_IN, 422, 422),
    "admin:generation_response": (LOG_IN, LOG_IN, 422, 422),
}

# What may be done with a model in the admin: by a researcher, by an admin. From it follow its
# pages: the list, a row and its history take "view", the others the permission of their name.
# Somebody who may only view gets a row's page without a way to save it.
MODELS = {
    "generation_targetgroup": ("view add change", "view add change delete"),
    "generation_demonstration": ("view add change", "view add change delete"),
    "generation_generationrun": ("view add", "view add"),
    "generation_generation": ("view", "view"),
    "generation_reading": ("view add", "view add"),
    "generation_auditentry": ("view", "view"),
    "annotator_hittype": ("view add change", "view add change delete"),
    "annotator_hit": ("view", "view"),
    "annotator_assignment": ("view", "view"),
    "annotator_worker": ("view change", "view change"),
    "annotator_invitation": ("view add change", "view add change"),
    "annotator_consentform": ("view add change", "view add change"),
    "annotator_helpline": ("view add change delete", "view add change delete"),
    "annotator_payment": ("view add", "view add"),
    "annotator_payout": ("view", "view"),
    "annotator_panel": ("view add change", "view add change"),
    "annotator_qualification": ("view add change", "view add change delete"),
    "annotator_testresult": ("view", "view"),
    "annotator_knownanswers": ("view add change", "view add change"),
    "analysis_dataimport": ("view add", "view add"),
    "analysis_humanvalset": ("view add", "view add"),
    "analysis_trainedclassifier": ("view add", "view add"),
    "analysis_evaluationset": ("view add", "view add"),
    "analysis_evaluation": ("view add", "view add"),
    "auth_group": ("", "view add change delete"),
    "auth_user": ("", "view add change delete"),
}
NEEDS = {"changelist": "view", "change": "view", "history": "view", "add": "add", "delete": "delete"}


def every_pattern(patterns, namespace="", route=""):
    """Each address as (name, or its route if it has none; the names of its parameters)."""
    for pattern in patterns:
        here = route + str(pattern.pattern)
        if hasattr(pattern, "url_patterns"):
            inner = f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace
            yield from every_pattern(pattern.url_patterns, inner, here)
        else:
            parameters = list(pattern.pattern.converters) or list(pattern.pattern.regex.groupindex)
            yield f"{namespace}{pattern.name}" if pattern.name else here, parameters


# The API's addresses have a table of their own, in tests/api/test_permissions.py.
EVERY_PATTERN = [
    (name, parameters) for name, parameters in every_pattern(get_resolver().url_patterns) if not name.startswith("api-")
]


def model_of(name):
    return next((model for model in MODELS if name.startswith(f"admin:{model}_")), None)


def row_redirect(name):
    """The model whose row an address without a name stands for: it leads on to the row's page."""
    found = re.fullmatch(r"admin/(\w+)/(\w+)/<path:object_id>/", name)
    return found and f"{found[1]}_{found[2]}"


def expected(name):
    if name in PAGES:
        return PAGES[name]
    if row_redirect(name) in MODELS:
        return LOG_IN, LOG_IN, 302, 302
    model = model_of(name)
    assert model, f"{name} is a new address: say in this file what each role may see there."
    needed = NEEDS[name.removeprefix(f"admin:{model}_")]
    researcher, admin = (200 if needed in may.split() else 403 for may in MODELS[model])
    return LOG_IN, LOG_IN, researcher, admin


class World:
    """A row of everything, and a browser of each role."""

    def __init__(self):
        self.run = make_run()
        self.searched = make_searched_generation()
        [self.response] = make_responses(make_group("women"), "our skipper is a woman")
        hit = make_hit()
        make_hit(hit_type=hit.hit_type)
        self.worker = consenting_worker()
        self.assignment = accept(self.worker)
        self.invitation = self.worker.invitations.create()
        self.panel = Panel.objects.create(name="first wave")
        self.payment = paying.pay_bonus(worker=self.worker, amount=Decimal(5), reason="For your remarks.", by=None)
        self.payout = paying.make_payout(by=None)
        researchers = Group.objects.get(name=RESEARCHER)
        self.researcher = User.objects.create(username="ada", is_staff=True)
        self.researcher.groups.add(researchers)
        self.admin = User.objects.create(username="bob", is_staff=True, is_superuser=True)
        self.rows = {
            "generation_targetgroup": hit.generation.group,
            "generation_demonstration": Demonstration.objects.first(),
            "generation_generationrun": self.run,
            "generation_generation": hit.generation,
            "generation_reading": make_reading(1),
            "generation_auditentry": auditing.note("run started", subject="run 1"),
            "annotator_hittype": hit.hit_type,
            "annotator_hit": hit,
            "annotator_assignment": self.assignment,
            "annotator_worker": self.worker,
            "annotator_invitation": self.invitation,
            "annotator_consentform": self.assignment.consent.form,
            "annotator_helpline": HelpLine.objects.create(name="Night Line", how="call 555 0100"),
            "annotator_payment": self.payment,
            "annotator_payout": self.payout,
            "annotator_panel": self.panel,
            "annotator_qualification": Qualification.objects.create(name="reads English"),
            "annotator_testresult": TestResult.objects.create(
                test=hit.hit_type, worker=self.worker, right=1, total=2, passed=False
            ),
            "annotator_knownanswers": KnownAnswers.objects.create(
                generation=make_generation(), expected={"lewd": ["no"]}
            ),
            "analysis_dataimport": DataImport.objects.create(format="train", file_name="train.csv"),
            "analysis_humanvalset": HumanvalSet.objects.create(version=1, seed=1),
            "analysis_trainedclassifier": make_trained_classifier(finished=False),
            "analysis_evaluationset": make_evaluation_set(),
            "analysis_evaluation": make_evaluation(),
            "auth_group": researchers,
            "auth_user": self.researcher,
        }

    def browser(self, role):
        client = Client()
        if role == "annotator":
            client.get(self.path_of_the_link())
        elif role != "anonymous":
            client.force_login(getattr(self, role))
        return client

    def path_of_the_link(self, *, to_join=False):
        link = inviting.panel_link(self.panel) if to_join else inviting.link(self.invitation)
        return link.removeprefix("http://localhost:8000")

    def address(self, name, parameters):
        model = row_redirect(name) or model_of(name)
        values = {
            "token": self.path_of_the_link(to_join=name == "annotator:join").split("/")[2],
            "hit_type_id": self.rows["annotator_hittype"].pk,
            "key": self.assignment.key,
            "name": "annotations",
            "file_format": "csv",
            "page": "agreement",
            "report": "agreement",
            "section": "toxicity",
            "ending": "json",
            "payout_id": self.payout.pk,
            "run_id": self.run.pk,
            "reading_id": self.rows["generation_reading"].pk,
            "import_id": self.rows["analysis_dataimport"].pk,
            "set_id": self.rows["analysis_humanvalset"].pk,
            "classifier_id": self.rows["analysis_trainedclassifier"].pk,
            "test_set_id": self.rows["analysis_evaluationset"].pk,
            "evaluation_id": self.rows["analysis_evaluation"].pk,
            "form_id": self.assignment.consent.form_id,
            "generation_id": self.searched.pk,
            "slug": "women",
            "label": "benign",
            "trial_id": self.response.trial_id,
            "response_id": self.response.pk,
            "pk": self.run.pk,
            "id": self.researcher.pk,
            "app_label": "annotator",
            "content_type_id": ContentType.objects.get_for_model(self.run).pk,
            "object_id": self.rows[model].pk if model else self.run.pk,
        }
        if row_redirect(name):
            return f"/{name}".replace("<path:object_id>", str(values["object_id"]))
        if name == "admin/(?P<url>.*)$":
            return "/admin/nowhere/"
        return reverse(name, kwargs={parameter: values[parameter] for parameter in parameters})


def outcome(response):
    if response.status_code == 302 and response["Location"].startswith("/admin/login/"):
        return LOG_IN
    return response.status_code


@pytest.fixture
def world():
    return World()


def test_every_address_answers_each_role_as_written_down(world):
    answered = {
        name: tuple(outcome(world.browser(role).get(world.address(name, parameters))) for role in ROLES)
        for name, parameters in EVERY_PATTERN
    }
    differing = {name: answer for name, answer in answered.items() if answer != expected(name)}
    assert differing == {}


def test_every_row_of_these_tables_is_an_address(world):
    names = {name for name, _ in EVERY_PATTERN}
    assert (PAGES.keys() | ACTS.keys()) - names == set()
    assert {model for model in MODELS if f"admin:{model}_changelist" not in names} == set()


@pytest.mark.parametrize("name", ACTS)
@pytest.mark.parametrize("role", ROLES)
def test_every_act_answers_each_role_as_written_down(world, role, name):
    address = world.address(name, dict(EVERY_PATTERN)[name])
    response = world.browser(role).post(address, answers(agree="on", version="1"))
    assert outcome(response) == ACTS[name][ROLES.index(role)]


@pytest.mark.parametrize("role", ROLES)
def test_what_a_role_may_not_do_in_the_admin_cannot_be_posted_either(world, role):
    browser = world.browser(role)
    for model, may in MODELS.items():
        allowed = dict(zip(ROLES, ("", "", *may), strict=True))[role].split()
        for act in {"add", "change", "delete"} - set(allowed):
            name = f"admin:{model}_{act}"
            response = browser.post(world.address(name, dict(EVERY_PATTERN)[name]), {"post": "yes"})
            refusal = 403 if role in ("researcher", "admin") else LOG_IN
            assert outcome(response) == refusal, name
        world.rows[model].refresh_from_db()


def test_a_researcher_cannot_open_the_management_of_users(world):
    browser = world.browser("researcher")
    for address in ("/admin/auth/", "/admin/auth/user/", "/admin/auth/group/", "/admin/auth/user/add/"):
        assert browser.get(address).status_code in (403, 404), address
    assert "/admin/auth/user/" not in browser.get("/admin/").content.decode()
    assert "/admin/auth/user/" in world.browser("admin").get("/admin/").content.decode()


def test_a_user_who_is_not_staff_gets_nothing_of_the_workspace(world):
    browser = Client()
    browser.force_login(User.objects.create(username="eve"))
    for name, parameters in EVERY_PATTERN:
        if (
            name.startswith(("admin", "report", "work_out_report", "demographics", "export", "download"))
            and PAGES.get(name, [LOG_IN])[0] == LOG_IN
        ):
            assert outcome(browser.get(world.address(name, parameters))) == LOG_IN, name


def test_staff_without_permissions_see_nothing_that_is_stored(world):
    browser = Client()
    browser.force_login(User.objects.create(username="eve", is_staff=True))
    for name, parameters in EVERY_PATTERN:
        is_of_a_model = model_of(name) or name in ("report", "demographics", "export", "download")
        is_a_page_of_its_own = name.removeprefix("admin:") in (
            "report_part", "report_file", "report_table",
            "annotator_review", "annotator_choose", "annotator_watch", "annotator_stop", "annotator_extend",
            "analysis_import_progress", "analysis_import_faults",
            "analysis_training_preview", "analysis_training_progress", "analysis_training_evaluations",
            "analysis_evaluating_progress", "analysis_test_set_evaluations",
            "generation_run_progress", "generation_run_outlook", "generation_run_samples",
            "generation_run_recipe", "generation_replay", "generation_read_progress",
            "generation_sets", "generation_set", "generation_set_history", "generation_trial",
        )  # fmt: skip
        if is_of_a_model or is_a_page_of_its_own:
            assert browser.get(world.address(name, parameters)).status_code == 403, name
