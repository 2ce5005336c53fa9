"""The exports by name. ``writing`` writes them."""

from analysis.exports.annotated import ANNOTATED
from analysis.exports.annotations import ANNOTATIONS
from analysis.exports.columns import Export
from analysis.exports.humanval import HUMANVAL
from analysis.exports.mturk import IN_MTURK
from analysis.exports.train import TRAIN
from analysis.exports.wide import WIDE

EXPORTS: dict[str, Export] = {
    export.name: export for export in (TRAIN, ANNOTATED, ANNOTATIONS, WIDE, IN_MTURK, HUMANVAL)
}
