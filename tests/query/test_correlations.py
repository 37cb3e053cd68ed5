"""Coefficients against their definitions, written out another way."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from query.statistics.class_report import ClassStatistics
from query.statistics.correlations import average_ranks, correlate, pearson

VALUES = st.lists(st.integers(0, 6).map(lambda n: n / 4), min_size=1, max_size=12)


def statistics_of(tag: str, share: float, frames: int = 5) -> ClassStatistics:
    """A class with a share."""
    return ClassStatistics(
        tag=tag, name=tag.title(), frames=frames, pixels=1, share=share, share_where_present=share
    )


def textbook_pearson(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Covariance over the product of the deviations, in exact sums."""
    n = len(x)
    mean_x, mean_y = math.fsum(x) / n, math.fsum(y) / n
    over = math.fsum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    under = math.fsum((a - mean_x) ** 2 for a in x) * math.fsum((b - mean_y) ** 2 for b in y)
    return over / math.sqrt(under) if under > 1e-18 else None


@given(VALUES)
def test_ranks(values: list[float]) -> None:
    """1 + the smaller ones + half of the equal others."""
    assert average_ranks(values) == [
        1 + sum(w < v for w in values) + (sum(w == v for w in values) - 1) / 2 for v in values
    ]


@given(VALUES.flatmap(lambda x: st.tuples(st.just(x), st.permutations(x))))
def test_coefficients(pair: tuple[list[float], list[float]]) -> None:
    """Pearson's of the values, Spearman's of their ranks; null where one is constant."""
    x, y = pair
    coefficients = correlate(
        [statistics_of(f"t{i}", share) for i, share in enumerate(x)],
        {f"t{i}": iou / 2 for i, iou in enumerate(y)},
    )
    assert coefficients.scored == len(x)
    assert coefficients.pearson == pytest.approx(textbook_pearson(x, y))
    expected = textbook_pearson(average_ranks(x), average_ranks(y))
    assert coefficients.spearman == pytest.approx(expected)


def test_a_known_example() -> None:
    """Charles Spearman's textbook case of IQ and hours of television: -29/165."""
    iq = (106, 100, 86, 101, 99, 103, 97, 113, 112, 110)
    hours = (7, 27, 2, 50, 28, 29, 20, 12, 6, 17)
    correlation = correlate(
        [statistics_of(str(i), value) for i, value in enumerate(iq)],
        {str(i): value / 100 for i, value in enumerate(hours)},
    )
    assert correlation.spearman == pytest.approx(-29 / 165)


@pytest.mark.parametrize(
    ("shares", "ious"),
    [([], []), ([0.1], [0.5]), ([0.1, 0.1], [0.5, 0.6]), ([0.1, 0.2], [0.5, 0.5]),
     ([0.1, 0.2], [None, 0.5]), ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0])],
)  # fmt: skip
def test_degenerate_cases_are_null(shares: list[float], ious: list[float | None]) -> None:
    """Too few classes, or the same value for all: null, not NaN, and no error."""
    classes = [statistics_of(f"t{i}", share) for i, share in enumerate(shares)]
    correlation = correlate(classes, {f"t{i}": iou for i, iou in enumerate(ious)})
    assert (correlation.pearson, correlation.spearman) == (None, None)
    assert "null" in correlation.model_dump_json()
    assert "NaN" not in correlation.model_dump_json()
    assert pearson([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]) == 1.0


def test_worst_first() -> None:
    """By IoU, of equals the one with fewer frames; a class without IoU last, and not compared."""
    classes = [
        statistics_of("sky", 0.4, 90), statistics_of("car", 0.1, 70), statistics_of("van", 0.01, 3),
        statistics_of("animals", 0.0, 0), statistics_of("bicycle", 0.02, 9),
    ]  # fmt: skip
    correlation = correlate(
        classes, {"sky": 0.9, "car": 0.0, "van": 0.0, "animals": None, "moon": 0.2}
    )
    assert [score.tag for score in correlation.classes] == [
        "van",
        "car",
        "sky",
        "animals",
        "bicycle",
    ]
    assert [score.iou for score in correlation.classes] == [0.0, 0.0, 0.9, None, None]
    assert correlation.scored == 3
    assert correlation.spearman == pytest.approx(math.sqrt(3) / 2)
