"""The confusion matrix as a picture."""

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from catalog.errors import not_installed

try:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure
except ImportError as error:
    raise not_installed("matplotlib, which draws the confusion matrix,", "report") from error

INK, QUIET, LINE, PAPER = "#1f2933", "#7b8794", "#c3ccd3", "#ffffff"
FLOOR = 1e-5
"""Shares below this are drawn like it."""

_LONGEST_LABEL = 40
"""Characters."""

_COLOURS = 64
"""Of the picture: those of a scale, of lines and of letters' edges."""


def draw_confusion_matrix(report: dict[str, Any]) -> bytes:
    """A PNG of a report's confusion matrix.

    Each cell is coloured by its share of the row's truth pixels, on a logarithmic scale, so that
    rare classes and rare mistakes are seen beside the street. Rows without truth are hatched,
    cells without a pixel white; the diagonal carries its share in percent.
    """
    matrix = np.asarray(report["confusion_matrix"], dtype=np.int64)
    truth = matrix.sum(axis=1)
    names = [_plain(name) for name in report["classes"]]
    side_inches = max(4.5, 0.27 * len(names))
    figure = Figure(figsize=(side_inches + 3.6, side_inches + 2.6), facecolor=PAPER)
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    shares = matrix / np.maximum(truth, 1)[:, None]
    drawn = np.where(matrix == 0, np.nan, np.maximum(shares, FLOOR))
    image = axes.imshow(drawn, cmap="YlGnBu", norm=LogNorm(FLOOR, 1))
    for row in np.flatnonzero(truth == 0):
        axes.axhspan(row - 0.5, row + 0.5, facecolor=PAPER, edgecolor=LINE, hatch="////", lw=0)
    for row in np.flatnonzero(truth):
        share = float(shares[row, row])
        colour = PAPER if share > 0.01 else INK
        axes.text(
            row, row, f"{100 * share:.0f}", color=colour, fontsize=6, ha="center", va="center"
        )
    _label_axes(axes, names, truth)
    bar = figure.colorbar(image, ax=axes, fraction=0.04, pad=0.015)
    bar.set_ticks([10.0**-power for power in range(6)])
    bar.set_ticklabels(["100 %", "10 %", "1 %", "0.1 %", "0.01 %", "up to 0.001 %"])
    bar.set_label("share of the true class's pixels (logarithmic)", color=INK, fontsize=9)
    bar.ax.tick_params(labelsize=8, colors=INK)
    axes.set_title(_title(report), loc="left", fontsize=11, color=INK, pad=10)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=110, bbox_inches="tight", metadata={"Software": None})
    # A quarter of the bytes: the page of a report holds the picture.
    small = io.BytesIO()
    with Image.open(file) as picture:
        picture.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE).save(small, "PNG")
    return small.getvalue()


def _label_axes(axes: Any, names: Sequence[str], truth: npt.NDArray[np.int64]) -> None:
    positions = range(len(names))
    axes.set_xticks(positions, names, rotation=90, fontsize=8, color=INK)
    axes.set_yticks(positions, names, fontsize=8, color=INK)
    for tick, pixels in zip(axes.get_yticklabels(), truth, strict=True):
        tick.set_color(INK if pixels else QUIET)
    axes.set_xlabel("predicted class", fontsize=10, color=INK)
    axes.set_ylabel("true class (hatched: none in this data)", fontsize=10, color=INK)
    axes.set_xticks(np.arange(-0.5, len(names)), minor=True)
    axes.set_yticks(np.arange(-0.5, len(names)), minor=True)
    axes.grid(which="minor", color="#e4e8eb", linewidth=0.5)
    axes.tick_params(which="both", length=0)
    for spine in axes.spines.values():
        spine.set_color(LINE)


def _plain(name: str) -> str:
    """A class's name as a label: of one line, not too long, and no formula."""
    line = "".join(each if each.isprintable() else "?" for each in name)
    return _escaped(line if len(line) <= _LONGEST_LABEL else line[: _LONGEST_LABEL - 1] + "…")


def _escaped(text: str) -> str:
    """A text in which matplotlib sees no formula: it reads what stands between two dollars."""
    return text.replace("$", r"\$")


def _title(report: dict[str, Any]) -> str:
    dataset, model = report["dataset"], report["model"]
    miou = "none" if report["miou"] is None else f"{100 * report['miou']:.1f} %"
    return _escaped(
        f"Model {model['name']}, step {model['step']}, on {dataset['name']} "
        f"v{dataset['version']} ({dataset['split']})\n"
        f"{report['frames']} frames, mean IoU {miou}"
    )
