"""How long a run is, by how many threads, and how it is told to end."""

import doctest
import os
import signal
from itertools import islice
from pathlib import Path

import pytest

from pipeline.cores import cores, threads_of_process
from pipeline.example_order import examples
from pipeline.runs import run_length as module
from pipeline.runs.run_length import run_length
from training.run.stop_signal import noted_signals


def test_docstring_examples() -> None:
    """Proves the examples in the docstring say what happens."""
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed


@pytest.mark.parametrize("frames", [1, 3, 7, 20])
@pytest.mark.parametrize("workers", [1, 2, 3, 8])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_frames_seen_are_those_that_the_workers_read(frames: int, workers: int, steps: int) -> None:
    """Proves the share that the start line tells, against the order that the workers follow."""
    seen = set()
    for rank in range(workers):
        order = examples(frames, 0, 2, rank=rank, ranks=workers)
        seen |= {example.row for example in islice(order, 2 * steps)}
    length = run_length(frames, workers, 2, steps, None)
    assert length.frames_seen == len(seen)
    assert length.epochs == pytest.approx(steps * 2 * workers / frames)


@pytest.mark.parametrize("frames", [1, 3, 7, 2500])
@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_an_epoch_and_the_default_see_every_frame(frames: int, workers: int) -> None:
    """Proves --epochs 1 is the least that sees all, and that no default sees less."""
    one = run_length(frames, workers, 2, None, 1)
    assert one.share_seen == 1
    if one.max_steps > 1:
        assert run_length(frames, workers, 2, one.max_steps - 1, None).share_seen < 1
    assert "every frame of the split" in str(one)
    assert run_length(frames, workers, 2, None, None).max_steps == max(300, one.max_steps)


def test_threads_are_the_cores_share(tmp_path: Path) -> None:
    """Proves a worker has its share of the cores that it may use, at least one, or what is said."""
    mine = len(os.sched_getaffinity(0))
    assert threads_of_process(3, 8) == 3
    assert threads_of_process(0, 10 * mine) == 1
    quota = tmp_path / "cpu.max"
    for text, expected in (("max 100000", mine), ("100000 100000", 1), ("5000 100000", 1)):
        quota.write_text(text)
        assert cores(quota) == expected
    assert cores(tmp_path / "none") == mine


def test_signals_are_noted_and_given_back() -> None:
    """Proves a second signal does not end what the first one has asked to end."""
    before = signal.getsignal(signal.SIGTERM)
    with noted_signals() as stop:
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
            os.kill(os.getpid(), number)
        assert stop.received == "SIGTERM"
    assert signal.getsignal(signal.SIGTERM) is before
