"""Room on the disk and in memory is looked for before the first step."""

from pathlib import Path

import pytest

from catalog.errors import JobFailed, StorageError
from training.run.room import need_room

GB = 1_000_000_000


def test_too_little_room_is_refused(tmp_path: Path) -> None:
    """A folder that is not there yet is on its parent's disk."""
    need_room(tmp_path / "new" / "model", 1)
    with pytest.raises(StorageError, match=r"MB are free, and .* take 1,152,921,504,607 MB"):
        need_room(tmp_path / "new" / "model", 1 << 60)


@pytest.mark.training
def test_too_little_memory_is_refused(tmp_path: Path) -> None:
    """What layers keep grows with the batch; workers share the machine; a container has a limit.

    Of the small U-Net 29 MB an example are known, where a step of eight took 35 MB each.
    """
    from training.network.model import build_model
    from training.run.memory import free_bytes, need_memory, step_bytes

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
    found = free_bytes()
    assert found is not None
    assert found > 10_000_000
