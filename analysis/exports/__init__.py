"""The exports by name: each is a function that yields the lines of a file."""

from analysis.exports import annotations

EXPORTS = {annotations.NAME: annotations.csv_lines}
