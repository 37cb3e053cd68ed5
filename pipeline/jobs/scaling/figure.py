"""The figure of a scaling study, as SVG: a column for each number of ranks, the median over it."""

from collections.abc import Callable, Sequence
from html import escape

from pipeline.jobs.scaling.table import Row

_WIDTH, _HEIGHT, _BASE, _TOP = 420, 260, 210, 50


def figure(rows: Sequence[Row], title: str) -> str:
    """Images a second, beside what no loss would give, and seconds from start to end.

    Args:
        rows: Of the table, the fewest ranks first.
        title: Words above.
    """
    fewest = rows[0]
    ideal = [fewest.images_per_s * row.ranks / fewest.ranks for row in rows]
    panels = (
        _panel("images/s", rows, lambda row: row.images_per_s, ideal),
        _panel("seconds, start to end", rows, lambda row: row.seconds, ()),
    )
    body = "".join(
        f'<g transform="translate({at * _WIDTH} 24)">{panel}</g>' for at, panel in enumerate(panels)
    )
    size = f"0 0 {_WIDTH * len(panels)} {_HEIGHT + 24}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" font-family="sans-serif" '
        f'font-size="12"><rect width="100%" height="100%" fill="#fff"/>'
        f'<text x="12" y="20" font-size="14">{escape(title)}</text>{body}</svg>\n'
    )


def _panel(
    name: str, rows: Sequence[Row], value_of: Callable[[Row], float], ideal: Sequence[float]
) -> str:
    highest = max([value_of(row) for row in rows] + [*ideal])
    scale = (_BASE - _TOP) / highest if highest else 0.0
    pitch = (_WIDTH - 40) / len(rows)
    marks = [f'<text x="20" y="30" fill="#333">{escape(name)}</text>']
    for at, row in enumerate(rows):
        value = value_of(row)
        x, width = 20 + at * pitch, pitch * 0.6
        top, middle = _BASE - value * scale, 20 + at * pitch + pitch * 0.3
        marks += [
            f'<path d="M{x:.1f} {_BASE}h{width:.1f}V{top:.1f}h-{width:.1f}z" fill="#4477aa"/>',
            f'<text x="{middle:.1f}" y="{top - 5:.1f}" text-anchor="middle">{value:,.4g}</text>',
            f'<text x="{middle:.1f}" y="{_BASE + 16}" text-anchor="middle">{row.ranks}</text>',
        ]
        if ideal:
            line = _BASE - ideal[at] * scale
            marks.append(
                f'<path d="M{x:.1f} {line:.1f}h{width:.1f}" stroke="#cc6677" stroke-width="2"/>'
            )
    marks.append(f'<text x="20" y="{_BASE + 36}" fill="#333">ranks</text>')
    return "".join(marks)
