"""What a worker of a validation takes of memory."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.pipeline.homes import REPOSITORY
from tests.training.commands import ONE_THREAD, run_several
from tests.training.drawn_frames import found_frames, read_class_list, write_manifest

SAMPLE_FRAMES = REPOSITORY / "sample_data/a2d2/camera_lidar_semantic"

_DROPS = """
import re
from pathlib import Path
import numpy as np
import pyarrow.parquet
from training.library_pages import drop_library_pages
def file_kb():
    return int(re.search(r"RssFile:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
before = file_kb()
drop_library_pages()
print(before, file_kb())
print(np.linalg.norm(np.ones((4, 4))), pyarrow.table({"a": [1]}).to_pylist())
"""

# Of its own program alone: what wait4 tells counts the process that started it, too.
_WORKER = """
import re, sys
from pathlib import Path
from training.main import main
status = main(sys.argv[1:])
print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
sys.exit(status)
"""


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="Linux tells what is mapped")
def test_a_process_goes_on_without_its_libraries_pages() -> None:
    """Most of what NumPy and Arrow mapped is gone, and both work as before."""
    printed = subprocess.run(
        [sys.executable, "-c", _DROPS], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    kb, results = printed.stdout.splitlines()
    before, after = (int(number) for number in kb.split())
    assert after < before / 2
    assert results == "4.0 [{'a': 1}]"


@pytest.mark.training
def test_a_worker_of_a_validation_takes_less_than_600_megabytes(tmp_path: Path) -> None:
    """On frames of 1920x1208, the model of 240x152, by what the kernel says was the most."""
    files = found_frames(SAMPLE_FRAMES)
    classes = read_class_list(next(SAMPLE_FRAMES.rglob("class_list.json")))
    write_manifest(tmp_path / "frames", SAMPLE_FRAMES, {"train": files[:1], "val": files}, classes)
    read = ["--manifest", str(tmp_path / "frames"), "--model_dir", str(tmp_path / "model")]
    train = ["--exec_mode", "train", *read, *ONE_THREAD, "--max_steps", "1", "--batch_size", "1"]
    (trained,) = run_several(train)
    assert trained.status == 0, trained.err
    evaluate = ["--exec_mode", "evaluate", "--split", "val", *read, *ONE_THREAD]
    results = ["--results_dir", str(tmp_path / "results")]
    worker = [sys.executable, "-c", _WORKER, *evaluate, *results]
    printed = subprocess.run(worker, cwd=REPOSITORY, check=True, capture_output=True, text=True)
    assert int(printed.stdout.split()[-1]) * 1024 < 600e6
