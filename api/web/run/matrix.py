"""A validation's confusion matrix as a table: how much of each class the model took for what.

Each cell leads to the frames behind it, which the validation's report has: /jobs/NAME/frames.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from api.web.find.url_question import UrlQuestion
from catalog.errors import InvalidInput

_HEATS = 9
"""Shades of a cell, beside none."""

MOST_SHOWN = 40
"""Classes of a matrix on a page."""


@dataclass(frozen=True)
class Cell:
    """A class that the model took for a class."""

    pixels: int
    """How many."""
    share: float
    """Of the true class's pixels, 0 to 1."""
    heat: int
    """Its shade: 0 where there is none, to 9 where it is all of them."""
    place: str
    """Places of the two classes among the report's, as the page of its frames takes them."""
    right: bool
    """The model took the class for itself."""


@dataclass(frozen=True)
class Row:
    """A true class."""

    name: str
    """Its name."""
    pixels: int
    """Its pixels."""
    cells: tuple[Cell, ...]
    """One for each predicted class."""


@dataclass(frozen=True)
class Matrix:
    """The classes of a validation that have a pixel, some of them as a table."""

    columns: tuple[str, ...]
    """Names of the classes shown."""
    rows: tuple[Row, ...]
    """One for each of them."""
    others: tuple[str, ...]
    """Names of the classes left out."""


def matrix_of(report: Mapping[str, Any], chosen: Collection[str] = ()) -> Matrix:
    """The confusion matrix of a report.

    Args:
        chosen: Names of the classes to show; where it has none of the report's, those with most
            pixels in cells of errors, as many as a page shows.
    """
    matrix: Sequence[Sequence[int]] = report["confusion_matrix"]
    names: Sequence[str] = report["classes"]
    every = [
        index
        for index in range(len(names))
        if any(matrix[index]) or any(row[index] for row in matrix)
    ]

    def wrong_pixels(index: int) -> int:
        taken = sum(row[index] for row in matrix)
        return sum(matrix[index]) + taken - 2 * matrix[index][index]

    present = [index for index in every if names[index] in chosen]
    if not present:
        present = sorted(sorted(every, key=wrong_pixels, reverse=True)[:MOST_SHOWN])
    others = tuple(names[index] for index in every if index not in present)
    rows = []
    for truth in present:
        pixels_of_truth = sum(matrix[truth])
        cells = []
        for predicted in present:
            pixels = matrix[truth][predicted]
            share = pixels / pixels_of_truth if pixels_of_truth else 0.0
            cells.append(
                Cell(
                    pixels=pixels,
                    share=share,
                    heat=max(1, round(_HEATS * share)) if pixels else 0,
                    place=f"{truth}.{predicted}",
                    right=truth == predicted,
                )
            )
        rows.append(Row(names[truth], pixels_of_truth, tuple(cells)))
    return Matrix(tuple(names[index] for index in present), tuple(rows), others)


def classes_at(report: Mapping[str, Any], place: str) -> tuple[str, str]:
    """The names of the true and of the predicted class of a cell: see `Cell.place`.

    Raises:
        InvalidInput: The report has no such cell.
    """
    classes: Sequence[str] = report["classes"]
    places = [int(part) for part in place.split(".") if part.isdecimal() and len(part) < 6]
    if len(places) != 2 or max(places) >= len(classes):
        raise InvalidInput(
            f"cell={place[:40]}: expected the numbers of two of {len(classes)} classes, such as 0.1"
        )
    return classes[places[0]], classes[places[1]]


def label_tags(report: Mapping[str, Any], tag: str) -> str:
    """Tags of the label classes that a class of a report is made of, with commas between.

    Pictures take these; a class that the report lacks stands for itself.
    """
    of_tag = {row.get("tag"): row.get("label_tags") for row in report["per_class"]}
    return ",".join(of_tag.get(tag) or [tag])


def class_name(report: Mapping[str, Any], tag: str) -> str:
    """The name of a report's class; a class that the report lacks stands for itself."""
    return next((row["class"] for row in report["per_class"] if row.get("tag") == tag), tag)


def cell_path(job: str, truth: str, predicted: str) -> str:
    """The page of a cell's frames, by the names or tags of its classes."""
    cell = {"truth": truth, "predicted": predicted}
    return f"/jobs/{quote(job, safe='')}/frames?{urlencode(cell)}"


def question_path(model: str, tags: tuple[str, str], shown: UrlQuestion) -> str:
    """Find, with all frames in which a model whose scores it has took a class for a class.

    Args:
        tags: Of the true class, and of the one it was taken for.
        shown: How they are shown.
    """
    truth, predicted = tags
    question = {"model": model, "where": f"confusion({truth}, {predicted}) >= 1"}
    return "/?" + urlencode([("question", json.dumps(question)), *shown.pairs])


def shown_of(model: str | None, tags: tuple[str, str]) -> UrlQuestion:
    """How the pages of a cell's frames show them: the error itself, or where the true class is.

    Args:
        model: The one that was validated, or ``job:NAME`` of the validation that scored another
            program's predictions; None where there are no predictions of it.
        tags: Of the true class, and of the one it was taken for.
    """
    truth, predicted = tags
    if model is None or truth == predicted:
        return UrlQuestion.of([("over", "label"), ("truth", truth)])
    return UrlQuestion.of([("over", f"errors:{model}"), ("truth", truth), ("predicted", predicted)])
