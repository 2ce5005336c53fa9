"""Figures as Plotly reads them, made without Plotly: plain mappings that JSON can hold.

Colours are those of Okabe and Ito, which people who do not see all colours tell apart, and never stand alone: bars
have a pattern, points a shape, lines a dash, and the cells of a heatmap their number. A series keeps its colour
wherever it is shown. An ``Estimate`` carries its 95 % interval; what is undefined leaves a gap, and the table beside
the figure says why. Widths follow the page, so that a phone can show them.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from analysis.reports.chart_parts import (
    BLACK,
    INK,
    LIGHT_BLUE,
    LINE,
    MOST_UPRIGHT,
    ON_COLOUR,
    PLOT_HEIGHT,
    SIGNED,
    WHITE,
    Chart,
    axis_of,
    frame_of,
    hover_of,
    layout_of,
    limit_axis,
    looks_of,
    number_told,
    of_values,
    plain,
    room_below,
    type_of_axis,
    value_of,
    with_marks,
    wrapped,
)
from analysis.reports.frame import Cell


def bars(
    series: Mapping[str, Sequence[Cell]],
    categories: Sequence[str],
    *,
    x_title: str,
    y_title: str,
    share: bool = False,
    stacked: bool = False,
    horizontal: bool = False,
    marks: Mapping[str, float] | None = None,
    limits: tuple[float, float] | None = None,
) -> Chart:
    """Bars of each series side by side, or ``stacked`` and then without intervals.

    ``series`` has one cell for each of ``categories``. ``x_title`` names the categories and ``y_title`` the values,
    also where the bars lie. ``share``: the values are between 0 and 1, shown as per cent. ``marks`` are the paper's
    figures by category; ``limits`` are the ends of the axis of values. Raises ``ValueError`` for a series of another
    length and for a category that is there twice.
    """
    horizontal = horizontal or len(categories) > MOST_UPRIGHT
    traces = []
    for name, (colour, pattern, _, _) in looks_of(series).items():
        trace = of_values(name, series[name], categories, share=share, horizontal=horizontal, intervals=not stacked)
        marker: Chart = {"color": colour, "line": {"color": INK, "width": 1}}
        marker["pattern"] = {"shape": pattern, "solidity": 0.25, "fgcolor": "#ffffff", "fillmode": "overlay"}
        traces.append({"type": "bar", "orientation": "h" if horizontal else "v", **trace, "marker": marker})
    layout = layout_of(categories, len(series), x_title, y_title, share=share, horizontal=horizontal, stacked=stacked)
    layout |= {"barmode": "stack" if stacked else "group", "bargap": 0.25}
    limit_axis(layout["xaxis" if horizontal else "yaxis"], series, limits)
    return with_marks({"data": traces, "layout": layout}, marks, categories, share=share, horizontal=horizontal)


def points(
    series: Mapping[str, Sequence[Cell]],
    categories: Sequence[str],
    *,
    x_title: str,
    y_title: str,
    share: bool = False,
    stacked: bool = False,
    horizontal: bool = False,
    marks: Mapping[str, float] | None = None,
    limits: tuple[float, float] | None = None,
) -> Chart:
    """A point with its interval for each category, the series beside each other; the rest as of ``bars``.

    The axis need not begin at 0, so this suits means and differences. ``stacked`` puts the series on one line.
    """
    horizontal = horizontal or len(categories) > MOST_UPRIGHT
    traces = []
    for name, (colour, _, symbol, _) in looks_of(series).items():
        trace = of_values(name, series[name], categories, share=share, horizontal=horizontal, intervals=True)
        for key in trace.keys() & {"error_x", "error_y"}:
            trace[key]["color"] = colour
        marker = {"color": colour, "symbol": symbol, "size": 9, "line": {"color": INK, "width": 1}}
        orientation = {} if stacked else {"orientation": "h" if horizontal else "v"}
        traces.append({"type": "scatter", "mode": "markers", **orientation, **trace, "marker": marker})
    layout = layout_of(categories, len(series), x_title, y_title, share=share, horizontal=horizontal, stacked=stacked)
    layout |= {"scattermode": "overlay" if stacked else "group", "scattergap": 0.4}
    values_axis = layout["xaxis" if horizontal else "yaxis"]
    values_axis["rangemode"] = "normal"
    limit_axis(values_axis, series, limits)
    return with_marks({"data": traces, "layout": layout}, marks, categories, share=share, horizontal=horizontal)


def lines(
    series: Mapping[str, Sequence[Cell]], x: Sequence[float | str], *, x_title: str, y_title: str, share: bool = False
) -> Chart:
    """A line of each series over ``x``: numbers, days as YYYY-MM-DD, or steps in their order."""
    kind = type_of_axis(x)
    traces = []
    for name, (colour, _, symbol, dash) in looks_of(series).items():
        at = [plain(one) for one in x] if kind == "category" else [*x]
        written = [str(one) for one in x]
        trace = of_values(name, series[name], at, share=share, horizontal=False, intervals=True, written=written)
        if "error_y" in trace:
            trace["error_y"] |= {"color": colour, "thickness": 1}
        marker = {"color": colour, "symbol": symbol, "size": 7, "line": {"color": INK, "width": 1}}
        look = {"line": {"color": colour, "dash": dash, "width": 2}, "marker": marker}
        traces.append({"type": "scatter", "mode": "lines+markers", "connectgaps": False, **trace, **look})
    values = {**axis_of(y_title), **({"tickformat": ".0%", "rangemode": "tozero"} if share else {})}
    layout = {
        **frame_of(),
        "height": PLOT_HEIGHT + room_below(len(series)),
        "xaxis": {**axis_of(x_title), "type": kind},
    }
    return {"data": traces, "layout": layout | {"yaxis": values, "showlegend": len(series) > 1}}


def reliability(series: Mapping[str, Sequence[tuple[float, Cell, int]]]) -> Chart:
    """Of each classifier, by bins, its mean probability, what share of the texts is toxic, and how many texts.

    The dotted line is where both are the same; a point is the larger the more texts it stands for.
    """
    line = {"color": BLACK, "dash": "dot", "width": 1.5}
    traces: list[Chart] = [
        {"type": "scatter", "mode": "lines", "name": "As it should be", "x": [0, 1], "y": [0, 1], "hoverinfo": "skip"}
        | {"line": line}
    ]
    most = max((n for points in series.values() for _, _, n in points), default=1)
    for name, (colour, _, symbol, dash) in looks_of(series).items():
        at = [float(mean) for mean, _, _ in series[name]]
        cells = [cell for _, cell, _ in series[name]]
        written = [f"Mean probability {mean:.1%}, {n:,} texts" for mean, _, n in series[name]]
        trace = of_values(name, cells, at, share=True, horizontal=False, intervals=True, written=written)
        if "error_y" in trace:
            trace["error_y"] |= {"color": colour, "thickness": 1}
        sizes = [6 + 12 * (n / most) ** 0.5 for _, _, n in series[name]]
        marker = {"color": colour, "symbol": symbol, "size": sizes, "line": {"color": INK, "width": 1}}
        look = {"line": {"color": colour, "dash": dash, "width": 2}, "marker": marker}
        traces.append({"type": "scatter", "mode": "lines+markers", **trace, **look})
    shares = {"tickformat": ".0%", "range": [-0.05, 1.05]}
    layout = {**frame_of(), "height": PLOT_HEIGHT + 60 + room_below(len(traces)), "showlegend": True}
    layout |= {"xaxis": axis_of("Mean probability") | shares, "yaxis": axis_of("Share that is toxic") | shares}
    return {"data": traces, "layout": layout}


def histogram(
    series: Mapping[str, Sequence[float]], *, x_title: str, bins: int | Sequence[float], y_title: str = ""
) -> Chart:
    """How the values of each series spread: of one the counts, of several the share of each series.

    ``bins`` is their number, or their edges, which leave out what lies beyond. Values that are not finite are left out.
    """
    numbers = {name: np.asarray(values, dtype=float) for name, values in series.items()}
    numbers = {name: values[np.isfinite(values)] for name, values in numbers.items()}
    everything = np.concatenate([*numbers.values(), np.empty(0)])
    edges = np.histogram_bin_edges(everything, bins if isinstance(bins, int) else np.asarray(bins, dtype=float))
    traces = []
    for name, (colour, _, symbol, dash) in looks_of(series).items():
        counts = np.histogram(numbers[name], edges)[0]
        total = max(int(counts.sum()), 1)
        told = [
            f"{plain(name)}, {low:.4g} to {high:.4g}: {count:,} ({count / total:.1%})"
            for low, high, count in zip(edges, edges[1:], counts, strict=False)
        ]
        trace: Chart = {"name": plain(name), "hoverinfo": "text", "hovertext": told}
        middles = [float(one) for one in (edges[1:] + edges[:-1]) / 2]
        if len(series) == 1:
            trace |= {"type": "bar", "x": middles, "y": [int(count) for count in counts]}
            trace |= {"width": [float(one) for one in np.diff(edges)]}
            trace["marker"] = {"color": colour, "line": {"color": "#ffffff", "width": 0.5}}
        else:
            trace |= {"type": "scatter", "mode": "lines+markers", "x": middles}
            trace |= {"y": [float(count / total) for count in counts], "marker": {"symbol": symbol, "size": 5}}
            trace["line"] = {"color": colour, "dash": dash, "width": 2, "shape": "hvh"}
            trace["marker"]["color"] = colour
        traces.append(trace)
    y_axis = axis_of(y_title or ("Number" if len(series) == 1 else "Share of the series")) | {"rangemode": "tozero"}
    layout = {**frame_of(), "height": PLOT_HEIGHT + room_below(len(series)), "xaxis": axis_of(x_title), "yaxis": y_axis}
    layout |= {"bargap": 0, "showlegend": len(series) > 1}
    if len(series) > 1:
        y_axis["tickformat"] = ".0%"
    return {"data": traces, "layout": layout}


def heatmap(
    rows: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[Cell]], *, share: bool = False
) -> Chart:
    """``cells[row][column]`` as colours with their numbers in them; a cell without a number stays empty."""
    values = [[value_of(cell) for cell in row] for row in cells]
    told = [
        [hover_of(f"{row}, {column}", cell, share=share) for column, cell in zip(columns, line, strict=True)]
        for row, line in zip(rows, cells, strict=True)
    ]
    signed = any(value is not None and value < 0 for line in values for value in line)
    trace: Chart = {
        "type": "heatmap",
        "x": wrapped(columns),
        "y": wrapped(rows),
        "z": values,
        "text": [[number_told(cell, share=share) if cell is not None else "" for cell in row] for row in values],
        "texttemplate": "%{text}",
        "hovertext": told,
        "hoverinfo": "text",
        "hoverongaps": False,
        "colorscale": SIGNED if signed else [[0, WHITE], [1, LIGHT_BLUE]],
        "textfont": {"color": ON_COLOUR},
        "xgap": 1,
        "ygap": 1,
        "colorbar": {"thickness": 12, "outlinewidth": 0, "tickformat": ".0%" if share else ""},
    }
    if share and not signed:
        trace |= {"zmin": 0, "zmax": 1}
    if signed:
        trace["zmid"] = 0
    layout = {**frame_of(), "height": 120 + sum(LINE * max(2, label.count("<br>") + 1) for label in trace["y"])}
    layout["xaxis"] = {**axis_of(""), "type": "category", "showgrid": False}
    layout["yaxis"] = {**axis_of(""), "type": "category", "showgrid": False, "autorange": "reversed"}
    return {"data": [trace], "layout": layout}
