"""What figures are made of: looks, axes, labels, values with their intervals, and the paper's marks."""

import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from textwrap import wrap
from typing import Any

from analysis.reports.frame import Cell, Estimate

Chart = dict[str, Any]

BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, BLACK, GREY = "#CC79A7", "#56B4E9", "#3A3A3A", "#7F7F7F"
INK = "#1f2430"
GRID = "#d9dee7"
#: The cells of heatmaps: so light that their numbers are dark in either theme.
WHITE, LIGHT_BLUE, LIGHT_ORANGE, ON_COLOUR = "#ffffff", "#74b3e0", "#f0b27a", "#1e232f"
SIGNED = [[0, LIGHT_ORANGE], [0.5, WHITE], [1, LIGHT_BLUE]]
PAPER = "Paper"
"""The series of the figures that the paper published."""

#: Colour, pattern of bars, shape of points and dash of lines.
Look = tuple[str, str, str, str]
LOOKS: tuple[Look, ...] = (
    (BLUE, "", "circle", "solid"),
    (ORANGE, "/", "square", "dash"),
    (GREEN, ".", "triangle-up", "dot"),
    (VERMILION, "x", "x", "dashdot"),
    (PURPLE, "-", "triangle-down", "longdash"),
    (SKY, "\\", "pentagon", "longdashdot"),
    (BLACK, "+", "cross", "solid"),
    (GREY, "|", "star", "dot"),
)
MEANINGS: dict[str, Look] = {
    "alice": LOOKS[0],
    "top-k": LOOKS[1],
    "non-toxic": LOOKS[2],
    "benign": LOOKS[2],
    "neutral": LOOKS[2],
    "toxic": LOOKS[3],
    "ambiguous": LOOKS[4],
    "ai": LOOKS[5],
    "if written by ai": LOOKS[5],
    "human": LOOKS[6],
    "if written by a human": LOOKS[6],
    "disagreement": LOOKS[7],
    "unclear": LOOKS[7],
}
"""The series that have a look of their own, in small letters."""

MOST_UPRIGHT = 6
"""With more categories than these the values lie, so that a phone has room for the labels."""
LABEL_WIDTH = 16
LINE = 18
"""Pixels of one line of a label."""
PLOT_HEIGHT = 300
FEW = 8
MARGIN = {"l": 8, "r": 16, "t": 16, "b": 8}
FONT = {"family": "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', sans-serif", "size": 13, "color": INK}


def of_values(
    name: str,
    cells: Sequence[Cell],
    at: Sequence[Any],
    *,
    share: bool,
    horizontal: bool,
    intervals: bool,
    written: Sequence[str] | None = None,
) -> Chart:
    """Where the values of a series stand, how sure they are and what is said of each.

    Without ``written`` the places are categories, whose labels are wrapped.
    """
    labels = [*at] if written is None else [*written]
    if len(cells) != len(labels):
        raise ValueError(f"The series {name!r} has {len(cells)} values for {len(labels)} categories.")
    if written is None and len(set(labels)) < len(labels):
        raise ValueError("A category is there twice.")
    places, values = wrapped(labels) if written is None else [*at], [value_of(cell) for cell in cells]
    trace: Chart = {
        "name": plain(name),
        "x": values if horizontal else places,
        "y": places if horizontal else values,
        "hoverinfo": "text",
        "hovertext": [
            hover_of(f"{label}, {name}", cell, share=share) for label, cell in zip(labels, cells, strict=True)
        ],
    }
    if intervals and any(isinstance(cell, Estimate) and cell.low is not None for cell in cells):
        trace["error_x" if horizontal else "error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": [_beyond(cell, upwards=True) for cell in cells],
            "arrayminus": [_beyond(cell, upwards=False) for cell in cells],
            "color": INK,
            "thickness": 1.5,
            "width": 4,
        }
    return trace


def with_marks(
    chart: Chart, marks: Mapping[str, float] | None, categories: Sequence[str], *, share: bool, horizontal: bool
) -> Chart:
    """The chart with the paper's figures as diamonds; those of categories that are not shown are left out."""
    shown = {category: float(marks[category]) for category in categories if category in marks} if marks else {}
    if shown:
        places, values = wrapped([*shown]), [*shown.values()]
        told = [hover_of(f"{category}, {PAPER}", value, share=share) for category, value in shown.items()]
        trace: Chart = {"type": "scatter", "mode": "markers", "name": PAPER, "hoverinfo": "text", "hovertext": told}
        trace |= {"x": values if horizontal else places, "y": places if horizontal else values}
        trace["marker"] = {"symbol": "diamond-open", "size": 18, "color": BLACK, "line": {"width": 1.5}}
        chart["data"].append(trace)
        chart["layout"]["showlegend"] = True
    return chart


def layout_of(
    categories: Sequence[str],
    n_series: int,
    x_title: str,
    y_title: str,
    *,
    share: bool,
    horizontal: bool,
    stacked: bool,
) -> Chart:
    of_categories = {**axis_of(x_title), "type": "category", "showgrid": False}
    of_values: Chart = {**axis_of(y_title), "rangemode": "tozero"}
    if share:
        of_values["tickformat"] = ".0%"
    if share and stacked:
        of_values["range"] = [0, 1]
    height = PLOT_HEIGHT + room_below(n_series)
    if horizontal:
        of_categories["autorange"] = "reversed"
        each = 22 if stacked else 12 * n_series + 10
        written = [LINE * (label.count("<br>") + 1) + 8 for label in wrapped(categories)]
        height = max(160, sum(max(each, one) for one in written) + 90) + room_below(n_series)
    axes = (of_values, of_categories) if horizontal else (of_categories, of_values)
    return {**frame_of(), "height": height, "xaxis": axes[0], "yaxis": axes[1], "showlegend": n_series > 1}


def limit_axis(axis: Chart, series: Mapping[str, Sequence[Cell]], limits: tuple[float, float] | None) -> None:
    """Let the axis of values end at ``limits``, and a few counts stand at whole numbers."""
    if limits:
        margin = 0.02 * (limits[1] - limits[0])
        axis["range"] = [limits[0] - margin, limits[1] + margin]
    cells = [cell for line in series.values() for cell in line if cell is not None]
    if cells and all(isinstance(cell, int) and cell <= FEW for cell in cells):
        axis["dtick"] = 1


def frame_of() -> Chart:
    return {
        "autosize": True,
        "font": FONT,
        "margin": MARGIN,
        "paper_bgcolor": "#ffffff",
        "plot_bgcolor": "#ffffff",
        "hoverlabel": {"align": "left"},
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 0, "yanchor": "bottom", "yref": "container"},
    }


def axis_of(title: str) -> Chart:
    return {
        "title": {"text": plain(title), "standoff": 8},
        "automargin": True,
        "gridcolor": GRID,
        "zerolinecolor": GRID,
        "linecolor": "#8a93a3",
    }


def room_below(n_series: int) -> int:
    """How much height the legend takes."""
    return 0 if n_series < 2 else 24 * math.ceil(n_series / 3)


def looks_of(names: Mapping[str, Any]) -> dict[str, Look]:
    """Each series' look: its own if it has a meaning, else the first that no other series has."""
    looks = {name: MEANINGS[name.lower()] for name in names if name.lower() in MEANINGS}
    free = [look for look in LOOKS if look not in looks.values()] or [*LOOKS]
    others = [name for name in names if name not in looks]
    looks |= {name: free[number % len(free)] for number, name in enumerate(others)}
    return {name: looks[name] for name in names}


def value_of(cell: Cell) -> float | None:
    if isinstance(cell, Estimate):
        return float(cell.value)
    if isinstance(cell, str):
        raise ValueError(f"{cell!r} is no number to draw.")
    return float(cell) if isinstance(cell, int | float) else None


def _beyond(cell: Cell, *, upwards: bool) -> float | None:
    """How far the interval reaches beyond the value."""
    if not isinstance(cell, Estimate) or cell.low is None or cell.high is None:
        return None
    return max(0.0, float(cell.high - cell.value) if upwards else float(cell.value - cell.low))


def hover_of(of: str, cell: Cell, *, share: bool) -> str:
    value = value_of(cell)
    if value is None:
        return plain(f"{of}: no value")
    told = number_told(value, share=share)
    if isinstance(cell, Estimate) and cell.low is not None and cell.high is not None:
        told += f" ({number_told(cell.low, share=share)} to {number_told(cell.high, share=share)})"
    return plain(f"{of}: {told}")


def number_told(value: float, *, share: bool) -> str:
    if share:
        return f"{value:.1%}"
    rounded = round(value, 2) + 0.0  # which makes -0.0 plain 0
    return f"{rounded:,.0f}" if value == int(value) and abs(value) >= 10 else f"{rounded:,.2f}"


def type_of_axis(x: Sequence[float | str]) -> str:
    if all(isinstance(one, int | float) for one in x):
        return "linear"
    return "date" if all(re.fullmatch(r"\d{4}-\d\d-\d\d.*", str(one)) for one in x) else "category"


def plain(text: object) -> str:
    """Text in which Plotly finds no markup."""
    return escape(str(text), quote=False)


def wrapped(labels: Sequence[object]) -> list[str]:
    """Labels in lines that fit a phone."""
    return ["<br>".join(map(plain, wrap(str(label), LABEL_WIDTH) or [""])) for label in labels]
