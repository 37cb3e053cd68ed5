"""A curve of scores over frames added as SVG, drawn from numbers alone."""

from collections.abc import Mapping, Sequence

Point = tuple[int, float, float, float]
_WIDTH, _HEIGHT, _LEFT, _TOP, _PLOT_W, _PLOT_H = 640, 400, 60, 30, 420, 310
_COLOURS = ("#777777", "#d62728", "#1f77b4", "#2ca02c", "#9467bd", "#8c564b", "#e377c2", "#000000")


def draw_curve(curve: Mapping[str, Sequence[Point]]) -> str:
    """The picture.

    Args:
        curve: Of each line its points: frames added, mean IoU [%], low and high end of its 95 %.
    """
    points = [point for line in curve.values() for point in line]
    right = max((point[0] for point in points), default=1) or 1
    top = max((point[3] for point in points), default=1.0) * 1.05

    def at(frames: float, score: float) -> tuple[float, float]:
        return _LEFT + _PLOT_W * frames / right, _TOP + _PLOT_H * (1 - score / top)

    middle, bottom = _LEFT + _PLOT_W / 2, _TOP + _PLOT_H
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}">',
        "<style>text {font: 12px sans-serif}</style>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<path d="M{_LEFT} {_TOP}V{bottom}H{_LEFT + _PLOT_W}" fill="none" stroke="black"/>',
        f'<text x="{middle}" y="{bottom + 40}" text-anchor="middle">frames added</text>',
        f'<text x="8" y="{_TOP - 12}">mean IoU of the classes chosen for [%]</text>',
    ]
    for frames in sorted({point[0] for point in points}):
        x, y = at(frames, 0)
        parts.append(f'<text x="{x:.1f}" y="{y + 16:.1f}" text-anchor="middle">{frames}</text>')
    for score in range(0, int(top) + 1, max(1, round(top / 6))):
        x, y = at(0, score)
        parts.append(f'<text x="{x - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{score}</text>')
    for number, ((name, line), colour) in enumerate(zip(curve.items(), _COLOURS, strict=False)):
        if not line:
            continue
        places = [at(frames, score) for frames, score, _, _ in line]
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for (x, y), (_, _, low, high) in zip(places, line, strict=True):
            ends = at(0, high)[1], at(0, low)[1]
            x += 2 * (number - 2)  # so that intervals do not hide each other
            parts.append(f'<path d="M{x:.1f} {ends[0]:.1f}V{ends[1]:.1f}" stroke="{colour}"/>')
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
        y = _TOP + 20 * number + 10
        parts.append(f'<rect x="500" y="{y - 9}" width="12" height="10" fill="{colour}"/>')
        parts.append(f'<text x="518" y="{y}">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])
