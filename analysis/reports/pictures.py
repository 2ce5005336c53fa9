"""Figures as pictures, drawn by a Chrome or Chromium that is found on the machine; nothing is fetched."""

import asyncio
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

WIDTH, TITLE_HEIGHT = 900, 50
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


class NoBrowser(Exception):
    """There is nothing to draw with; the message says what to do."""


def pictures_of(
    charts: Mapping[Any, tuple[str, Mapping[str, Any]]], formats: Sequence[str]
) -> Iterator[tuple[Any, str, bytes]]:
    """Each chart, given with its title, in each format: its key, the format and the file's bytes.

    Raises ``NoBrowser``.
    """
    if not any(map(shutil.which, BROWSERS)):
        raise NoBrowser(
            "There are no SVG and PNG pictures: no Chrome or Chromium was found. Install one (Debian: apt install "
            "chromium) and run this again; the HTML figures need none."
        )
    try:
        yield from asyncio.run(_draw(charts, formats))
    except (OSError, RuntimeError) as error:
        raise NoBrowser(f"There are no SVG and PNG pictures: the browser could not draw them ({error}).") from error


async def _draw(charts: Mapping[Any, tuple[str, Mapping[str, Any]]], formats: Sequence[str]) -> list:
    from kaleido import Kaleido  # large, and only needed here

    drawn = []
    path = next(filter(None, map(shutil.which, BROWSERS)))
    async with Kaleido(n=1, path=path, headless=True) as kaleido:
        for key, (title, chart) in charts.items():
            figure, height = _titled(title, chart)
            for format in formats:
                options = {"format": format, "width": WIDTH, "height": height, "scale": 2 if format == "png" else 1}
                drawn.append((key, format, await kaleido.calc_fig(figure, opts=options)))
    return drawn


def _titled(title: str, chart: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """The figure with its title above it, and its height."""
    figure = json.loads(json.dumps(chart))
    height = figure["layout"].get("height", 400) + TITLE_HEIGHT
    figure["layout"]["title"] = {
        "text": title.replace("&", "&amp;").replace("<", "&lt;"),
        "x": 0.02,
        "xanchor": "left",
        "y": 1,
        "yanchor": "top",
        "yref": "container",
        "pad": {"t": 12},
        "automargin": True,
    }
    return figure, height
