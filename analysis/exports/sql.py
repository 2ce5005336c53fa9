"""An export as one statement of SQL, whose rows PostgreSQL itself writes as CSV or as JSON."""

from collections.abc import Mapping, Sequence

from django.db import connection

from analysis.exports.columns import Column, Export, Kind, Rows

# As annotator.spreadsheets.harmless has it, in PostgreSQL's words.
STARTS_A_FORMULA = r"^[\t\r\n]|^\s*[=+\-@＝＋－＠]"
NUMBERS = (Kind.INTEGER, Kind.NUMBER)
BOOLEAN_WORDS = {Kind.BOOLEAN: ("True", "False"), Kind.FLAG: ("true", "false")}


def as_cells(export: Export, columns: Sequence[Column], filters: Mapping, *, excel_safe: bool) -> tuple[str, list]:
    """The statement whose rows are cells, for CSV: booleans in words, text as it is or harmless to spreadsheets."""
    return _select(export, columns, filters, [_cell(column, excel_safe=excel_safe) for column in columns])


def as_objects(export: Export, columns: Sequence[Column], filters: Mapping) -> tuple[str, list]:
    """The statement whose rows are one JSON object each, its keys in the order of the columns."""
    values, parameters = _select(export, columns, filters, ["{cell}"] * len(columns))
    return f"SELECT row_to_json(object)::text FROM ({values}) object", parameters  # noqa: S608 - our own words


def _select(export: Export, columns: Sequence[Column], filters: Mapping, forms: Sequence[str]) -> tuple[str, list]:
    parts = [_part(rows, len(columns)) for rows in export.rows(filters)]
    union = " UNION ALL ".join(f"({sql})" for sql, _ in parts)
    cells = ", ".join(
        f"{form.format(cell=f'c{number}')} AS {connection.ops.quote_name(column.name)}"
        for number, (column, form) in enumerate(zip(columns, forms, strict=True))
    )
    parameters = [parameter for _, given in parts for parameter in given]
    return f"SELECT {cells} FROM ({union}) cells ORDER BY place", parameters  # noqa: S608 - our own words


def _part(rows: Rows, width: int) -> tuple[str, tuple]:
    cells = {f"c{number}": cell for number, cell in enumerate(rows.cells)}
    if len(cells) != width:
        raise ValueError(f"There are {len(cells)} cells for {width} columns.")
    queryset = rows.queryset.order_by()
    if rows.by:
        queryset = queryset.values(*rows.by)
    return queryset.annotate(place=rows.place, **cells).values_list("place", *cells).query.sql_with_params()


def _cell(column: Column, *, excel_safe: bool) -> str:
    if column.kind in BOOLEAN_WORDS:
        yes, no = BOOLEAN_WORDS[column.kind]
        return f"CASE {{cell}} WHEN true THEN '{yes}' WHEN false THEN '{no}' END"
    if excel_safe and column.kind not in NUMBERS:
        return f"CASE WHEN {{cell}} ~ '{STARTS_A_FORMULA}' THEN '''' || {{cell}} ELSE {{cell}} END"
    return "{cell}"
