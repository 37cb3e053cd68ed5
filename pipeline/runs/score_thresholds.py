"""The least scores that a model must reach, as a validation is told them. A leaf."""

from collections.abc import Iterable, Mapping

from catalog.errors import InvalidInput, UnknownName

WHOLE_SCORES = ("miou", "frequency_weighted_iou", "boundary_iou", "pixel_accuracy")
"""Scores of a whole validation; every other name is a class's tag, and means its IoU."""


def parse_thresholds(text: str) -> dict[str, float]:
    """The least score by name.

    >>> parse_thresholds("miou=0.4, pedestrian=0.3")
    {'miou': 0.4, 'pedestrian': 0.3}

    Raises:
        InvalidInput: It is not NAME=SCORE,NAME=SCORE.
    """
    thresholds: dict[str, float] = {}
    for item in text.split(","):
        name, _, number = (piece.strip() for piece in item.partition("="))
        try:
            least = float(number)
        except ValueError:
            least = -1.0
        if not name or name in thresholds or not 0 <= least <= 1:
            raise InvalidInput(
                f"least score {item.strip()!r}: expected NAME=SCORE, each name once, the score "
                "from 0 to 1; for example miou=0.4,pedestrian=0.3"
            )
        thresholds[name] = least
    return thresholds


def shown_thresholds(thresholds: Mapping[str, float]) -> str:
    """The text that `parse_thresholds` reads."""
    return ",".join(f"{name}={least!r}" for name, least in thresholds.items())


def check_thresholds(thresholds: Mapping[str, float], class_tags: Iterable[str]) -> None:
    """See that each is a score of a validation of these classes.

    Raises:
        UnknownName: It is no score, and no class's tag.
        InvalidInput: It is not from 0 to 1.
    """
    known = (*WHOLE_SCORES, *class_tags)
    for name, least in thresholds.items():
        if name not in known:
            hint = f"Expected {', '.join(WHOLE_SCORES)}, or a class's tag for its IoU."
            raise UnknownName("score", name, known, hint)
        if not 0 <= least <= 1:
            raise InvalidInput(f"least score {name}={least:g}: expected 0 to 1")
