"""Orders as values: what they refuse alone, their JSON, and the rows of their settings."""

import dataclasses
from typing import Any

import pytest

from catalog.errors import FramesiftError, InvalidInput, UnknownName
from pipeline.runs.job_order import JobOrder
from pipeline.runs.job_orders import JOB_ORDERS, job_order_of
from pipeline.runs.orders import Prediction, Program, Training, Validation
from pipeline.runs.preflight_order import Preflight
from pipeline.runs.scaling_order import Scaling
from pipeline.runs.setting import Setting, rows

EACH = (
    Training(dataset="bikes", max_steps=3, augment=("mirror",), horovod={"compression": "fp16"}),
    Validation(question={"where": "car > 0"}, model="first@best", slices=("weather",), evict=True),
    Prediction(dataset="bikes@2", model="first", start_after=5.0),
    Program(dataset="bikes", command="echo {files}", ranks=2, resources={"gpus": 1}),
    Preflight(ranks=4, synthetic=True, steps=5, path="/gpfs", backend="slurm"),
    Scaling(dataset="bikes@2", ranks=(1, 4), repeats=3, max_steps=3, augment=("mirror",)),
)


@pytest.mark.parametrize("order", EACH)
def test_an_order_comes_back_from_its_json(order: JobOrder) -> None:
    """Which has what differs from the defaults, and nothing else."""
    data = order.as_json()
    assert job_order_of(data) == order
    assert data["kind"] == order.kind
    usual = {field.name: field.default for field in dataclasses.fields(order)}
    assert all(usual[name] != value for name, value in data.items() if name != "kind")
    order.check()


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        ({"kind": "fly"}, UnknownName, "unknown job 'fly'"),
        ({"kind": "train", "epoch": 1}, UnknownName, "did you mean epochs|known: "),
        ({"kind": "validate", "dataset": "a"}, InvalidInput, "validate: model is missing"),
        ({"kind": "train"}, InvalidInput, "give a dataset, or the question"),
        ({"kind": "train", "dataset": "a", "question": {}}, InvalidInput, "and not both"),
        ({"kind": "run", "dataset": "a", "command": "x", "ranks": 0}, InvalidInput, "ranks 0: exp"),
        (
            {"kind": "train", "dataset": "a", "seed": -1},
            InvalidInput,
            "seed -1: expected 0 or more",
        ),
        (
            {"kind": "train", "dataset": "a", "target_miou": 1.5, "evaluate_every": 1},
            InvalidInput,
            "target miou 1.5: expected a number above 0 and at most 1",
        ),
        (
            {"kind": "train", "dataset": "a", "learning_rate": float("inf")},
            InvalidInput,
            "learning rate inf: expected a number above 0",
        ),
        (
            {"kind": "predict", "dataset": "a", "model": "m", "start_after": 101},
            InvalidInput,
            "start after 101: expected 0 to 100 percent",
        ),
        (
            {"kind": "validate", "dataset": "a", "model": "m", "augment_test": "turn"},
            InvalidInput,
            "expected mirror",
        ),
        ({"kind": "run", "dataset": "a", "command": "x", "folder": "."}, InvalidInput, "absolute"),
        ({"kind": "preflight", "through": "mpi"}, InvalidInput, "through mpi: expected horovod or"),
        ({"kind": "preflight", "path": "data"}, InvalidInput, "path data: expected an absolute"),
        ({"kind": "preflight", "batch_size": 4}, InvalidInput, "batch size 4: goes with synthetic"),
        (
            {"kind": "preflight", "synthetic": True, "through": "torch"},
            InvalidInput,
            "leave out through torch",
        ),
        ({"kind": "preflight", "dataset": "a", "evict": True}, UnknownName, "evict"),
        ({"kind": "scaling", "dataset": "a", "workers": 2}, UnknownName, "workers"),
        ({"kind": "run", "dataset": "a", "command": "x", "prepare": "9"}, InvalidInput, "WIDTHxH"),
    ],
)
def test_what_an_order_refuses(
    data: dict[str, Any], error: type[FramesiftError], words: str
) -> None:
    """Before anything is read: what was given, and what was expected."""
    with pytest.raises(error, match=words):
        job_order_of(data).check()


def test_numbers_of_a_setting() -> None:
    """Each bound alone, and what it says of itself."""
    above = Setting(help="", gt=0)
    assert [above.takes(number) for number in (0, 0.1, float("nan"))] == [False, True, False]
    share = Setting(help="", gt=0, le=1)
    assert [share.takes(number) for number in (0, 1, 1.1)] == [False, True, False]
    count = Setting(help="", ge=1)
    assert [count.takes(number) for number in (0, 1, 2**40)] == [False, True, True]
    percent = Setting(help="", ge=0, le=100, unit="percent")
    assert [percent.takes(number) for number in (-1, 0, 100, 101)] == [False, True, True, False]
    assert [each.expected for each in (above, share, count, percent)] == [
        "a number above 0", "a number above 0 and at most 1", "1 or more", "0 to 100 percent",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", JOB_ORDERS)
def test_each_row_has_words(kind: str) -> None:
    """And a default that its bounds allow."""
    settings = rows(JOB_ORDERS[kind])
    assert len({row.name for row in settings}) == len(settings) > 8
    for row in settings:
        assert row.setting.help.endswith("."), row.name
        if isinstance(row.default, int | float) and not isinstance(row.default, bool):
            assert row.setting.takes(row.default), row.name
