"""The addresses below /api/."""

from django.urls import path, re_path
from rest_framework.routers import SimpleRouter

from analysis.api.agreement import AgreementViewSet
from analysis.api.classifiers import TrainedClassifierViewSet
from analysis.api.evaluations import EvaluationViewSet, TestSetViewSet
from analysis.api.exports import ExportViewSet
from analysis.api.humanval import HumanvalViewSet
from analysis.api.imports import ImportViewSet
from analysis.api.reports import ReportViewSet
from annotator.api.assignments import AssignmentViewSet
from annotator.api.consent import ConsentFormViewSet
from annotator.api.hits import HITViewSet
from annotator.api.pay import PaymentViewSet, PayoutViewSet
from annotator.api.people import InvitationViewSet, QualificationViewSet
from annotator.api.studies import StudyViewSet
from config.api import pages
from generation.api.audit import AuditEntryViewSet
from generation.api.demonstrations import DemonstrationViewSet
from generation.api.generations import GenerationViewSet
from generation.api.groups import GroupViewSet
from generation.api.readings import ReadingViewSet
from generation.api.runs import RunViewSet
from generation.api.trials import ResponseViewSet, TrialViewSet

router = SimpleRouter()
for name, viewset in {
    "groups": GroupViewSet,
    "demonstrations": DemonstrationViewSet,
    "trials": TrialViewSet,
    "responses": ResponseViewSet,
    "runs": RunViewSet,
    "generations": GenerationViewSet,
    "readings": ReadingViewSet,
    "studies": StudyViewSet,
    "hits": HITViewSet,
    "assignments": AssignmentViewSet,
    "consent-forms": ConsentFormViewSet,
    "invitations": InvitationViewSet,
    "qualifications": QualificationViewSet,
    "agreement": AgreementViewSet,
    "reports": ReportViewSet,
    "exports": ExportViewSet,
    "imports": ImportViewSet,
    "humanval": HumanvalViewSet,
    "classifiers": TrainedClassifierViewSet,
    "test-sets": TestSetViewSet,
    "evaluations": EvaluationViewSet,
    "payments": PaymentViewSet,
    "payouts": PayoutViewSet,
    "audit-entries": AuditEntryViewSet,
}.items():
    router.register(name, viewset, basename=f"api-{name}")

urlpatterns = [
    *router.urls,
    path("schema/", pages.Schema.as_view(), name="api-schema"),
    path("docs/", pages.docs, name="api-docs"),
    re_path(r"", pages.Unknown.as_view(), name="api-unknown"),
]
