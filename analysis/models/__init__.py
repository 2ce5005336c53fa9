"""What is read from annotations and kept: imports, reports and HUMANVAL sets."""

from analysis.models.humanval import (
    HumanvalProof,
    HumanvalSet,
    HumanvalSetQuerySet,
    HumanvalState,
    HumanvalStatement,
    RemovedFromTraining,
)
from analysis.models.imports import (
    UNENDED_IMPORTS,
    DataImport,
    DataImportQuerySet,
    HumanLabel,
    ImportedAnnotation,
    ImportFault,
    ImportFormat,
    ImportState,
)
from analysis.models.reports import StoredReport, StoredReportQuerySet

__all__ = [
    "UNENDED_IMPORTS",
    "DataImport",
    "DataImportQuerySet",
    "HumanLabel",
    "HumanvalProof",
    "HumanvalSet",
    "HumanvalSetQuerySet",
    "HumanvalState",
    "HumanvalStatement",
    "ImportFault",
    "ImportFormat",
    "ImportState",
    "ImportedAnnotation",
    "RemovedFromTraining",
    "StoredReport",
    "StoredReportQuerySet",
]
