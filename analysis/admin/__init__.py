"""The workspace's pages of imports, HUMANVAL sets and classifiers."""

from analysis.admin.classifiers import TrainedClassifierAdmin
from analysis.admin.evaluation_sets import EvaluationSetAdmin
from analysis.admin.evaluations import EvaluationAdmin
from analysis.admin.humanval import HumanvalSetAdmin
from analysis.admin.imports import DataImportAdmin

__all__ = ["DataImportAdmin", "EvaluationAdmin", "EvaluationSetAdmin", "HumanvalSetAdmin", "TrainedClassifierAdmin"]
