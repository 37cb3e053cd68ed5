"""Strata, targets, demands and metrics in words."""

import pytest

from api.schemas.jobs import JobBody
from api.web.build.in_words import Words
from api.web.run.measured import figures_of
from catalog.values import now

WORDS = Words({"car": "Car", "cars": "Cars of a fleet", "rd_normal_street": "RD normal street"})


@pytest.mark.parametrize(
    ("marginal", "value", "said", "target"),
    [
        ("car:0,1000", "1000:", "1,000 pixels or more", "Car, 1,000 pixels or more"),
        ("car:0,1000", ":0", "fewer than 0 pixels", "Car, fewer than 0 pixels"),
        ("car:1,1000", "1:1000", "1 to 999 pixels", "Car, 1 to 999 pixels"),
        ("car:1,2", "1:2", "1 pixels", "Car, 1 pixels"),
        ("speed:0.5,10", "0.5:10", "0.5 to below 10", "speed 0.5 to below 10"),
        ("speed:0.5,1000", ":0.5", "below 0.5", "speed below 0.5"),
        ("speed:-10,1000", "1000:", "1,000 or more", "speed 1,000 or more"),
        ("car", "present", "there", "Car, there"),
        ("car", "absent", "not there", "Car, not there"),
        ("camera", "present", "present", "camera present"),
        ("camera", "12:30", "12:30", "camera 12:30"),
        ("camera", "*", "all others", "camera all others"),
        ("speed:1", "none", "without a value", "speed without a value"),
    ],
)
def test_a_value_is_told_in_words(marginal: str, value: str, said: str, target: str) -> None:
    """Bins of classes are pixels, those of numbers have no unit, other values are as they are."""
    assert (WORDS.value(marginal, value), WORDS.target(marginal, value)) == (said, target)


def test_what_is_compared_has_its_name() -> None:
    """A class its own, a tag its tag; bins say their unit."""
    names = [WORDS.marginal(one) for one in ("car:0,9", "car", "camera", "speed:1,2", "cars")]
    assert names == ["Car [pixels]", "Car", "camera", "speed", "Cars of a fleet"]


def test_a_stratum_has_a_value_of_each() -> None:
    """Where they are not known, or a value has a slash, it stays as it is."""
    of = ["camera", "car:0,1000", "rd_normal_street"]
    assert WORDS.stratum(of, "front/1000:/absent") == (
        "front, Car: 1,000 pixels or more, RD normal street: not there"
    )
    for stratifiers, label in ((of, "front/left/1000:/absent"), ([], "front/1000:"), (of, "a")):
        assert WORDS.stratum(stratifiers, label) == label


@pytest.mark.parametrize(
    ("demand", "said"),
    [
        ("car", "Car"), ("car:5000", "Car: 5,000 pixels or more"), ("cars", "Cars of a fleet"),
        ("front_center/car:20", "Car: 20 pixels or more, front_center"),
        ("night at sea", "night at sea"), ("truck:5", "truck:5"),
    ],
)  # fmt: skip
def test_a_demand_is_told_in_words(demand: str, said: str) -> None:
    """A name that somebody gave stays."""
    assert WORDS.demand(demand) == said


def test_a_reason_names_values_in_words() -> None:
    """Those that a value stands in for; the rest of it is as it was."""
    reason = "wants 4 frames and gets 7: it stands in for what is missing of {}"
    said = WORDS.reason("car:1,10,20", reason.format("1:10, 20: and 3 more"))
    assert said == reason.format("1 to 9 pixels, 20 pixels or more and 3 more")
    assert WORDS.reason("camera", reason.format("a, b")) == reason.format("a, b")
    assert WORDS.reason("", "short by 3 of 9 frames") == "short by 3 of 9 frames"


def test_metrics_have_the_names_that_people_read() -> None:
    """A program's own have blanks."""
    metrics = {"baseline_miou": 0.25, "trained_frames": 3, "my_own_score": 0.5, "weakest": []}
    job = JobBody.model_construct(kind="train", metrics=metrics, created=now())
    assert figures_of(job) == [
        ("mean IoU of always the most frequent class", "0.25"),
        ("frames that the model was trained on", "3"), ("my own score", "0.5"),
    ]  # fmt: skip
