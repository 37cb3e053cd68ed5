"""The numbers that a user's program logs: what is read of a file that anybody may have written."""

import json
import os
import random
from pathlib import Path

import pytest

from pipeline.jobs.program import scalars as module
from pipeline.jobs.program.metrics import program_metrics
from pipeline.jobs.program.paths import ProgramPaths
from pipeline.jobs.program.scalars import MOST_CURVES, MOST_NAMES, MOST_POINTS, Series, scalars_of


def a_line(step: object, value: object, name: object = "loss", **fields: object) -> str:
    """A line of the file."""
    return json.dumps({"step": step, "name": name, "value": value, **fields}) + "\n"


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """The file in a job's folder, tmp_path/mine; beside it another job's, whose name goes on."""
    for name in ("mine", "mine-2"):
        (tmp_path / name / "output").mkdir(parents=True)
    (tmp_path / "mine-2" / "output" / "metrics.jsonl").write_text(a_line(1, 9.0))
    return tmp_path / "mine" / "output" / "metrics.jsonl"


def points(lines: Path, name: str = "loss") -> list[tuple[int, float]]:
    """The points of a curve."""
    curve = scalars_of(lines.parents[1]).curves.get(name, Series(True))
    return list(zip(curve.steps, curve.values, strict=True))


def test_a_later_attempt_takes_the_place_of_the_steps_that_it_repeats(lines: Path) -> None:
    """Per name: what another name has at these steps stays until its own line comes."""
    first = [a_line(step, 1 / step) for step in (1, 2, 3, 4, 5)] + [a_line(4, 0.3, "miou")]
    lines.write_text("".join(first))
    assert points(lines)[-1] == (5, 0.2)
    with lines.open("a") as file:  # the checkpoint was of step 2
        file.write(a_line(3, 7.0))
        file.flush()
        assert points(lines) == [(1, 1.0), (2, 0.5), (3, 7.0)]
        assert points(lines, "miou") == [(4, 0.3)]
        file.write(a_line(4, 6.0) + a_line(4, 0.4, "miou"))
    assert points(lines) == [(1, 1.0), (2, 0.5), (3, 7.0), (4, 6.0)]
    assert points(lines, "miou") == [(4, 0.4)]
    metrics = scalars_of(lines.parents[1]).metrics
    assert metrics == {"step": 4, "loss": 6.0, "miou": 0.4}


def test_lines_that_say_no_number(lines: Path) -> None:
    """They are counted and the first is named; a value that is no number is a gap, and known."""
    wrong = (
        a_line(-1, 1), a_line(True, 1), a_line(1.5, 1), a_line("1", 1), a_line(2**63, 1),
        a_line(1, 1, name=""), a_line(1, 1, name=7), a_line(1, 1, name="x" * 201),
        a_line(1, 1, name="a\x1b[31m"), a_line(1, 1, name="a\udc80"), a_line(1, "low"),
        a_line(1, True), a_line(1, [1]), '{"step": 1, "loss": 0.5}\n', "[1]\n", "no JSON\n",
        "[" * 5000 + "\n", '{"step": 1' + "0" * 5000 + ', "name": "a", "value": 1}\n',
        "x" * 200_000 + "\n", '{"step": 2, "na\n',
    )  # fmt: skip
    right = (
        a_line(0, 3), a_line(1.0, 2.5, time="12:00", epoch=0.1), "\n", a_line(2, float("nan")),
        a_line(3, 1, rank=0), a_line(4, 1, rank=1), a_line(5, None), a_line(6, 10**400),
    )  # fmt: skip
    lines.write_text("".join([*right, *wrong]), "utf-8", "surrogatepass")
    read = scalars_of(lines.parents[1])
    assert points(lines) == [(0, 3.0), (1, 2.5), (3, 1.0)]
    assert (read.left_out, read.first_left_out) == (len(wrong), len(right) + 1)
    assert read.lines == len(right) + len(wrong)
    assert read.metrics == {"step": 6, "loss": None}
    (warning,) = read.warnings
    assert f"{len(wrong)} lines are left out, line {len(right) + 1} first" in warning
    assert '{"step": 120, "name": "loss", "value": 0.42}' in warning


def test_a_line_that_is_being_written(lines: Path) -> None:
    """It counts when it is whole, once, whether its end of line has come or not."""
    whole = a_line(1, 0.5) + a_line(2, 0.4)
    for end in range(len(whole) + 1):
        lines.write_text(whole[:end])
        assert len(points(lines)) == whole[:end].count("}")
        assert scalars_of(lines.parents[1]).left_out == 0
    lines.write_text(a_line(1, 0.5).strip())
    scalars_of(lines.parents[1], whole=True)
    with lines.open("a") as file:
        file.write("\n" + a_line(2, 0.4))
    read = scalars_of(lines.parents[1])
    assert (read.lines, read.curves["loss"].steps) == (2, [1, 2])


def test_what_was_read_is_kept_and_read_on(lines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However a file is read, in portions and by many looks, what is known of it is the same."""
    draw = random.Random(7)
    text, step = "", 0
    for _ in range(2500):
        step = max(0, step - draw.randrange(300)) if draw.random() < 0.001 else step + 1
        text += a_line(step, draw.random(), draw.choice(["loss", "miou", "loss/car"]))
    lines.write_text(text)
    at_once = scalars_of(lines.parents[1])
    assert json.loads((lines.parents[1] / "scalars.json").read_text())["offset"] == len(text)
    lines.unlink()
    monkeypatch.setattr(module, "_PORTION", 1000)
    monkeypatch.setattr(module, "_A_LOOK", 5000)
    monkeypatch.setattr(module, "_SAVED_EVERY", 900)
    looks = 0
    with lines.open("w") as file:
        for begin in range(0, len(text), 7000):
            file.write(text[begin : begin + 7000])
            file.flush()
            scalars_of(lines.parents[1])
            looks += 1
    while (bit_by_bit := scalars_of(lines.parents[1])).offset < len(text):
        looks += 1
    assert looks > len(text) / 7000
    bit_by_bit.inode = at_once.inode
    assert bit_by_bit == at_once


def test_a_curve_has_so_many_points_at_most_and_its_last_one(lines: Path) -> None:
    """First and last step, evenly between them."""
    series = Series(True)
    for step in range(100_001):
        series.add(step, float(step))
        assert series.steps[-1] == step
    assert series.every == 128
    assert len(series.steps) <= MOST_POINTS
    assert series.steps == [*range(0, 100_001, 128), *([100_000] if 100_000 % 128 else [])]
    assert series.values == [float(step) for step in series.steps]
    series.add(640, 0.5)
    assert series.steps == [0, 128, 256, 384, 512, 640]


def test_names_without_end(lines: Path) -> None:
    """The first ones have curves, a thousand have last values, and lines of others are left out."""
    lines.write_text("".join(a_line(step, n, f"n{n}") for step in (1, 2) for n in range(1200)))
    read = scalars_of(lines.parents[1], whole=True)
    assert list(read.curves) == [f"n{n}" for n in range(MOST_CURVES)]
    assert len(read.metrics) == MOST_NAMES + 1
    assert read.metrics["n999"] == 999
    assert read.left_out == 2 * 200
    assert "the first 64 of 1,000 names have curves" in read.warnings[1]
    assert scalars_of(lines.parents[1]) == read


@pytest.mark.parametrize("rewritten", ["replaced", "cut", "overwritten"])
def test_a_file_that_begins_again(lines: Path, rewritten: str) -> None:
    """Nothing of the earlier one stays."""
    lines.write_text("".join(a_line(step, 1.0) for step in range(2000)))
    assert scalars_of(lines.parents[1], whole=True).lines == 2000
    text = "".join(a_line(step, 2.0, "miou") for step in range(3000))
    if rewritten == "replaced":
        lines.rename(lines.with_name("old"))
    if rewritten == "cut":
        text = text[:500]
    lines.write_text(text)
    assert list(scalars_of(lines.parents[1]).curves) == ["miou"]


def test_links_pipes_and_what_was_kept_are_not_trusted(lines: Path, tmp_path: Path) -> None:
    """A link out of the job's folder is not followed, neither the file's nor its folder's."""
    folder, other = lines.parents[1], tmp_path / "mine-2"
    lines.symlink_to(other / "output" / "metrics.jsonl")
    assert scalars_of(folder).metrics == {}
    lines.unlink()
    lines.parent.rmdir()
    lines.parent.symlink_to(other / "output")
    assert scalars_of(folder).metrics == {}
    assert program_metrics(folder) == {}
    lines.parent.unlink()
    lines.parent.mkdir()
    os.mkfifo(lines)
    assert scalars_of(folder).metrics == {}
    lines.unlink()
    lines.write_text(a_line(1, 0.5))
    scalars_of(folder, whole=True)
    kept = ProgramPaths(folder).scalars
    good = json.loads(kept.read_text())
    assert good["series"]["loss"] == [True, [1], [0.5], 1, 0.5, 1, 0]
    for wrong in (
        "", "[]", "no JSON", "{}", json.dumps({**good, "format": 2}),
        json.dumps({**good, "offset": -1}), json.dumps({**good, "series": []}),
        json.dumps({**good, "series": {"loss": [True, [2, 1], [0.5, 1.0], 1, 0.5, 1, 0]}}),
        json.dumps({**good, "series": {"loss": [True, [1], [float("nan")], 1, 0.5, 1, 0]}}),
        json.dumps({**good, "series": {"loss": [True, [1], ["<b>"], 1, 0.5, 1, 0]}}),
        json.dumps({**good, "series": {"loss": [True, [1], [0.5], 1, 0.5, 0, 0]}}),
        json.dumps({**good, "series": {"loss": []}}),
        json.dumps({**good, "series": {"a\nb": good["series"]["loss"]}}),
    ):  # fmt: skip
        kept.write_text(wrong)
        assert points(lines) == [(1, 0.5)], wrong
    kept.unlink()
    kept.symlink_to(other / "output" / "metrics.jsonl")
    assert points(lines) == [(1, 0.5)]


def test_metrics_json_says_more(lines: Path) -> None:
    """While the program runs, too; one that is being written is left out until it is whole."""
    lines.write_text(a_line(3, 0.5))
    document = lines.with_name("metrics.json")
    document.write_text('{"max_steps": 20, "lo')
    assert program_metrics(lines.parents[1]) == {"step": 3, "loss": 0.5}
    document.write_text('{"max_steps": 20, "loss": 0.4, "note": "é", "nan": NaN, "list": [1]}')
    metrics = program_metrics(lines.parents[1])
    assert metrics == {"step": 3, "loss": 0.4, "max_steps": 20, "note": "é"}
