"""What spreadsheets make of the cells of a CSV."""

STARTS_A_FORMULA = "=+-@＝＋－＠"


def harmless(text: str) -> str:
    """A cell that people typed, made such that no spreadsheet runs it as a formula.

    >>> harmless("=1+1"), harmless(" @here"), harmless("Ada = +1")
    ("'=1+1", "' @here", 'Ada = +1')
    """
    begins_one = text.lstrip().startswith(tuple(STARTS_A_FORMULA)) or text.startswith(("\t", "\r", "\n"))
    return f"'{text}" if begins_one else text
