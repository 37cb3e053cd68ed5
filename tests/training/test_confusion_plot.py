"""The confusion matrix as a picture, whatever classes are called."""

import io

import pytest
from PIL import Image

from training.validation.confusion_plot import draw_confusion_matrix

pytestmark = pytest.mark.attacks


def test_names_that_are_no_formulas() -> None:
    """Dollars, a name of 20,000 characters and a line feed: drawn as they are, and shortened."""
    names = [r"$\frac$", "a$b", r"\$\frac{$", "x" * 20_000, "two\nlines"]
    report = {
        "confusion_matrix": [[5 - abs(row - column) for column in range(5)] for row in range(5)],
        "classes": names,
        "dataset": {"name": r"$\set$", "version": 1, "split": "validation"},
        "model": {"name": r"$\model$", "step": 3},
        "frames": 7,
        "miou": None,
    }
    with Image.open(io.BytesIO(draw_confusion_matrix(report))) as picture:
        assert max(picture.size) < 2_000
        assert picture.mode == "P"
        assert len(picture.getcolors() or ()) <= 64
