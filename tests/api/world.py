"""A row of everything that the API shows, by the first part of its address."""

from decimal import Decimal

from django.contrib.auth.models import Group, User

from analysis.models import DataImport, HumanvalSet
from annotator import choosing, paying, reviewing, submitting
from annotator.models import Qualification
from config import tokens
from config.roles import RESEARCHER
from generation.auditing import note
from generation.models import Demonstration, Label, Prompt, Response, Trial
from tests.factories import (
    accept,
    answers,
    consenting_worker,
    make_demonstrations,
    make_evaluation,
    make_evaluation_set,
    make_generation,
    make_group,
    make_hit,
    make_hit_type,
    make_reading,
    make_run,
    make_searched_generation,
    make_trained_classifier,
)


class World:
    def __init__(self):
        group = make_group()
        make_demonstrations(group)
        self.run = make_run()
        self.searched = make_searched_generation()
        self.study = make_hit_type()
        for _ in range(3):
            make_generation()
        choosing.publish_draw(
            hit_type=self.study, filters=choosing.Filters(groups=("women",)), a_cell=2, seed=1, by=None
        )
        self.hit = make_hit(hit_type=self.study)
        self.worker = consenting_worker()
        self.assignment = accept(self.worker, hit_type=self.study)
        submitting.submit(assignment=self.assignment, answers=answers())
        reviewing.approve(ids=[self.assignment.pk], by=None)
        waiting = accept(consenting_worker(), hit_type=self.study)
        submitting.submit(assignment=waiting, answers=answers())
        self.payment = paying.pay_bonus(worker=self.worker, amount=Decimal(5), reason="For your remarks.", by=None)
        prompt = Prompt.objects.create(group=group, label=Label.BENIGN, text="- my aunt sails\n-")
        self.trial = Trial.objects.create(group=group, label=Label.BENIGN, prompt=prompt, language_model="toy", seed=1)
        self.response = Response.objects.create(
            trial=self.trial, position=0, text="she sails too", tokens=3, mentions_group=False
        )
        self.ids = {
            "groups": group.pk,
            "demonstrations": Demonstration.objects.first().pk,
            "trials": self.trial.pk,
            "responses": self.response.pk,
            "runs": self.run.pk,
            "generations": self.searched.pk,
            "readings": make_reading(1).pk,
            "studies": self.study.pk,
            "agreement": self.study.pk,
            "reports": "dataset",
            "hits": self.assignment.hit_id,
            "assignments": self.assignment.pk,
            "consent-forms": self.assignment.consent.form_id,
            "invitations": self.worker.invitations.create().pk,
            "qualifications": Qualification.objects.create(name="reads English").pk,
            "payments": self.payment.pk,
            "payouts": paying.make_payout(by=None).pk,
            "audit-entries": note("run started", subject=str(self.run), seed=7).pk,
            "imports": DataImport.objects.create(format="train", file_name="train.csv").pk,
            "humanval": HumanvalSet.objects.create(version=1, seed=1).pk,
            "classifiers": make_trained_classifier(finished=False).pk,
            "test-sets": make_evaluation_set().pk,
            "evaluations": make_evaluation().pk,
        }


def user_of(role):
    """A user of a role: admin, researcher, or outsider, who is no staff."""
    user, made = User.objects.get_or_create(
        username=f"the {role}", defaults={"is_staff": role != "outsider", "is_superuser": role == "admin"}
    )
    if made and role == "researcher":
        user.groups.add(Group.objects.get(name=RESEARCHER))
    return user


def token_of(role):
    return tokens.make_token(user=user_of(role), days=1)[1]
