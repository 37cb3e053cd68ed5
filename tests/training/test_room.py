"""Room on the disk and in memory is looked for before the first step."""

from pathlib import Path

import pytest

from catalog.errors import JobFailed, StorageError
from tests.training.commands import SMALL, run_several
from tests.training.drawn_frames import draw_frames, write_manifest
from training.run.checkpoint import checkpoints_bytes
from training.run.room import need_room

GB = 1_000_000_000


def test_too_little_room_is_refused(tmp_path: Path) -> None:
    """A folder that is not there yet is on its parent's disk.

    What new checkpoints replace is room for them.
    """
    need_room(tmp_path / "new" / "model", 1)
    with pytest.raises(StorageError, match=r"MB are free, and .* take 1,152,921,504,607 MB more"):
        need_room(tmp_path / "new" / "model", 1 << 60)
    (tmp_path / "checkpoint.npz").write_bytes(b"1234")
    (tmp_path / "checkpoint-1.npz").write_bytes(b"12")
    (tmp_path / "checkpoint.damaged.npz").write_bytes(b"stays")
    assert checkpoints_bytes(tmp_path) == 6


@pytest.mark.training
def test_a_run_that_goes_on_has_the_room_of_its_checkpoints(tmp_path: Path) -> None:
    """A run that needs more than the disk has is refused, but not where they take it already."""
    write_manifest(tmp_path / "manifest", tmp_path, {"train": draw_frames(tmp_path, 2)})
    flags = [
        "--exec_mode", "train", "--manifest", str(tmp_path / "manifest"), "--model_dir",
        str(tmp_path), "--max_steps", "1", "--keep_checkpoints", "500000", *SMALL,
    ]  # fmt: skip
    (refused,) = run_several(flags)
    with (tmp_path / "checkpoint.npz").open("wb") as file:
        file.truncate(8 << 40)  # takes no room on the disk
    (there,) = run_several(flags)
    assert "make room, or keep fewer" in refused.error
    assert "checkpoint is damaged" in there.error


@pytest.mark.training
def test_too_little_memory_is_refused(tmp_path: Path) -> None:
    """What layers keep grows with the batch; workers share the machine; a container has a limit.

    Of the small U-Net 29 MB an example are known, where a step of eight took 35 MB each.
    """
    from training.network.model import build_model
    from training.run.step_memory import free_bytes, need_memory, step_bytes

    model = build_model(152, 240, 38)
    an_example = step_bytes(model, 2) - step_bytes(model, 1)
    assert 20e6 < an_example < 34.7e6
    need_memory(model, 30, 1, free=GB)
    with pytest.raises(JobFailed, match=r"--batch_size 30: .* at least 0\.9 GB .* 0\.5 GB"):
        need_memory(model, 30, 2, free=GB)
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:    2000 kB\n")
    for name, text in (
        ("memory.max", "max"), ("memory.current", "900"), ("memory.stat", "inactive_file 500\n")
    ):  # fmt: skip
        (tmp_path / name).write_text(text)
    assert free_bytes(tmp_path / "meminfo", tmp_path) == 2000 * 1024
    (tmp_path / "memory.max").write_text("1000\n")
    assert free_bytes(tmp_path / "meminfo", tmp_path) == 600
    assert free_bytes(tmp_path / "none", tmp_path / "none") is None
    job = tmp_path / "slurm" / "job_1"
    (job / "step_0").mkdir(parents=True)
    for name, text in (("memory.max", "1000"), ("memory.current", "900"), ("memory.stat", "")):
        (job / name).write_text(text)
    (tmp_path / "own").write_text("4:memory:/elsewhere\n0::/slurm/job_1/step_0\n")
    left = free_bytes(tmp_path / "meminfo", tmp_path, tmp_path / "own")
    assert left == 100, "of the group above the process's own, which has none itself"
    found = free_bytes()
    assert found is not None
    assert found > 10_000_000
