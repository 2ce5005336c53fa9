"""What the options of an import are called: on the form by their labels, on the command line by their names."""

from collections.abc import Mapping

LABELS = {
    "on_fault": "If a row is bad",
    "make_groups": "Make groups that are not known yet",
    "study": "Study",
    "group": "Group",
    "label": "Label",
    "method": "Method",
    "encoding": "Encoding",
}
CHOICES = {
    "on_fault": {"refuse": "store nothing, and tell what is wrong", "skip": "leave it out, and store the others"},
}


def option(name: str, value: str = "") -> str:
    """An option, or one value of it, so that whoever reads it finds it wherever they import.

    >>> option("make_groups")
    '“Make groups that are not known yet” (on the command line --make-groups)'
    >>> option("encoding", "cp1252")
    '“Encoding: cp1252” (on the command line --encoding cp1252)'
    """
    on_the_form = f"{LABELS[name]}: {_chosen(name, value)}" if value else LABELS[name]
    return f"“{on_the_form}” (on the command line {' '.join(filter(None, (_flag(name), value)))})"


def in_words(options: Mapping[str, str | bool]) -> list[tuple[str, str]]:
    """Options as they are stored, each with its label and what was chosen.

    >>> in_words({"make_groups": True, "on_fault": "skip", "study": "Batch 7"})
    [('Make groups that are not known yet', 'yes'), ('If a row is bad', 'leave it out, and store the others'),
    ('Study', 'Batch 7')]
    """
    return [(LABELS.get(name, name), _chosen(name, value)) for name, value in options.items()]


def _chosen(name: str, value: str | bool) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return CHOICES.get(name, {}).get(value, value)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
