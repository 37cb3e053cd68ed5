"""What an error says of a name that is not among the known ones."""

import pytest

from catalog.errors import UnknownName

MANY = [f"{word}_{number}" for word in ("road", "sign", "wall") for number in range(9)]


@pytest.mark.parametrize(
    ("kind", "name", "known", "message"),
    [
        ("class", "cra", ["bus", "car"], "unknown class 'cra': did you mean car?"),
        ("split", "x", ["train"], "unknown split 'x': known: train."),
        ("class", "x", MANY, "'x': framesift classes, or GET /v1/classes, lists them."),
        ("tag", "weather", [*MANY, "center"], "'weather': framesift tags list, or GET /v1/tags,"),
        ("tag", "rood_1", MANY, "did you mean road_1 or road_8 or road_7? framesift tags list"),
        ("log", "x", MANY, f"unknown log 'x': known: {', '.join(sorted(MANY))}."),
    ],
)
def test_how_to_see_the_known_ones(kind: str, name: str, known: list[str], message: str) -> None:
    """The nearest ones, a few in full, and of many how to list them; a hint comes last."""
    said = str(UnknownName(kind, name, known, "It is an option."))
    assert message in said
    assert said.endswith(" It is an option.")
