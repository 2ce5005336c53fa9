"""The workspace's pages of imports and HUMANVAL sets."""

from analysis.admin.humanval import HumanvalSetAdmin
from analysis.admin.imports import DataImportAdmin

__all__ = ["DataImportAdmin", "HumanvalSetAdmin"]
