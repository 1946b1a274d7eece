"""What `make bench` has measured (docs/benchmarks.json) as bar charts in SVG.

The file: {heading of docs/benchmarks.md: {"unit", "columns": [...], "rows": [[name, number or null per column], ...]}}
"""

from __future__ import annotations

import html
import json
import math
from pathlib import Path
from typing import Any

COLOURS = {"weft": "#2e7d4f", "weft C": "#79b892"}
OTHERS = ["#5b7db1", "#b1835b", "#8a6bb1", "#b15b6b", "#6ba3b1", "#a3a35b"]
BAR, GAP, LEFT, WIDTH = 11, 12, 190, 860


def read(path: Path) -> dict[str, Any]:
    """The sections of a file; none where it is missing."""
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def draw_all(data: dict[str, Any]) -> dict[str, str]:
    """A picture per heading."""
    return {heading: draw(heading, section) for heading, section in data.items()}


def draw(heading: str, section: dict[str, Any]) -> str:
    """Groups of bars, on a logarithmic axis where numbers differ by more than a hundred times."""
    columns, rows = section["columns"], section["rows"]
    numbers = [v for _, *values in rows for v in values if v]
    least, most = min(numbers), max(numbers)
    is_log = most / least > 100
    low = math.log10(least) - 0.3 if is_log else 0.0
    high = math.log10(most) if is_log else most

    def x(value: float) -> float:
        at = math.log10(value) if is_log else value
        return LEFT + (WIDTH - LEFT - 70) * max(0.0, at - low) / (high - low)

    colours, free = {}, iter(OTHERS * 4)
    for c in columns:
        colours[c] = COLOURS.get(c) or next(free)
    parts, y = [], 34
    legend = LEFT
    for c in columns:
        parts.append(f'<rect x="{legend}" y="8" width="11" height="11" fill="{colours[c]}"/>'
                     f'<text x="{legend + 15}" y="18">{html.escape(c)}</text>')
        legend += 24 + 7 * len(c)
    for name, *values in rows:
        parts.append(f'<text x="{LEFT - 8}" y="{y + BAR * len(columns) / 2 + 4}" text-anchor="end">{html.escape(name)}</text>')
        for c, value in zip(columns, values):
            if value:
                parts.append(f'<rect x="{LEFT}" y="{y}" width="{max(1.0, x(value) - LEFT):.1f}" height="{BAR - 1}" '
                             f'fill="{colours[c]}"><title>{html.escape(c)}: {value:g} {html.escape(section["unit"])}</title></rect>'
                             f'<text class="value" x="{x(value) + 4:.1f}" y="{y + BAR - 2}">{value:g}</text>')
            y += BAR
        y += GAP
    axis = f"{section['unit']}{', logarithmic' if is_log else ''}; shorter is faster"
    parts.append(f'<text x="{LEFT}" y="{y + 8}">{html.escape(axis)}</text>')
    return (f'<svg class="plot" viewBox="0 0 {WIDTH} {y + 18}" role="img" aria-label="{html.escape(heading)}: '
            f'the table below has the same numbers">{"".join(parts)}</svg>')


def record(path: Path, heading: str, section: dict[str, Any]) -> None:
    """Puts what was measured in the place of what was measured before."""
    data = read(path)
    data[heading] = section
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
