"""A validation's confusion matrix as a table: how much of each class the model took for what."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

_HEATS = 9
"""Shades of a cell, beside none."""


@dataclass(frozen=True)
class Cell:
    """A class that the model took for a class.

    Attributes:
        pixels: How many.
        share: Of the true class's pixels, 0 to 1.
        heat: Its shade: 0 where there is none, to 9 where it is all of them.
        said: The cell in words.
        path: The page of the frames behind it; empty where there is none.
        right: The model took the class for itself.
    """

    pixels: int
    share: float
    heat: int
    said: str
    path: str
    right: bool


@dataclass(frozen=True)
class Row:
    """A true class.

    Attributes:
        name: Its name.
        pixels: Its pixels.
        cells: One for each predicted class.
    """

    name: str
    pixels: int
    cells: tuple[Cell, ...]


def matrix_rows(
    report: Mapping[str, Any], tags: Mapping[str, str], model: str | None
) -> tuple[tuple[str, ...], list[Row]]:
    """The classes that have a pixel, as columns, and a row for each of them.

    Args:
        report: The validation's.
        tags: Tag of each class by its name.
        model: The model as questions name it; None where its scores are not in the catalog.
    """
    matrix: Sequence[Sequence[int]] = report["confusion_matrix"]
    names: Sequence[str] = report["classes"]
    present = [
        index
        for index in range(len(names))
        if any(matrix[index]) or any(row[index] for row in matrix)
    ]
    rows = []
    for truth in present:
        whole = sum(matrix[truth])
        cells = []
        for predicted in present:
            pixels = matrix[truth][predicted]
            share = pixels / whole if whole else 0.0
            path = ""
            if pixels and model is not None and names[truth] in tags and names[predicted] in tags:
                path = frames_path(model, tags[names[truth]], tags[names[predicted]])
            cells.append(
                Cell(
                    pixels=pixels,
                    share=share,
                    heat=max(1, round(_HEATS * share)) if pixels else 0,
                    said=f"{names[truth]} taken for {names[predicted]}: {pixels:,} pixels, "
                    f"{100 * share:.1f} %",
                    path=path,
                    right=truth == predicted,
                )
            )
        rows.append(Row(names[truth], whole, tuple(cells)))
    return tuple(names[index] for index in present), rows


def frames_path(model: str, truth: str, predicted: str) -> str:
    """The page of the frames in which a model took a class for a class."""
    question = {"model": model, "where": f"confusion({truth}, {predicted}) >= 1"}
    return "/?" + urlencode({"question": json.dumps(question)})
