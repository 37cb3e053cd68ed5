"""The base package without extras: the main job but for training, by its commands and its client.

`make test-base` runs it on a second Python, in an environment without pytest.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

FRAMES = 12
NOT_OF_THE_BASE = ("tensorflow", "horovod", "boto3", "matplotlib", "pytest")


@dataclass(frozen=True)
class Base:
    """The commands of this environment, in a home of their own."""

    home: Path

    def run(self, *arguments: str, code: int = 0) -> str:
        """Run ``framesift``; what it said on both outputs."""
        environment = {**os.environ, "FRAMESIFT_HOME": str(self.home)}
        environment.pop("FRAMESIFT_CACHE", None)
        command = [sys.executable, "-P", "-m", "api.cli.main", *arguments]
        ended = subprocess.run(
            command, env=environment, check=False, capture_output=True, text=True, timeout=300
        )
        said = ended.stdout + ended.stderr
        assert ended.returncode == code, f"{arguments}: exit code {ended.returncode}: {said}"
        return said


def _draws_and_counts(base: Base) -> None:
    root = str(base.home.parent / "scenes")
    base.run("sample-data", "--frames", str(FRAMES), "--out", root)
    base.run("source", "add", "scenes", root)
    base.run("ingest", "scenes")
    info = base.run("sql", "select count(*) from metaocean")
    assert int(info.strip().splitlines()[-1].split(",")[-1]) >= FRAMES, info


def _answers_ranges(base: Base) -> None:
    rows = json.loads(base.run("select", "--range", "rd_normal_street=1:", "--json"))
    assert rows["frames"], rows


def _makes_and_prepares_a_dataset(base: Base) -> None:
    base.run("dataset", "create", "streets", "--range", "rd_normal_street=1:")
    base.run("stage", "streets", "--prepare", "240x152")
    assert list(base.home.rglob("images.npy")), "no prepared form"


def _says_where_it_trains(base: Base) -> None:
    said = base.run("train", "streets", code=1)
    assert "need Python 3.11" in said or sys.version_info[:2] == (3, 11), said


def main() -> None:
    """Run each check; a line for each, and the last says how many."""
    import numpy as np
    import pyarrow as pa

    print(f"Python {sys.version.split()[0]}, NumPy {np.__version__}, pyarrow {pa.__version__}")
    odd = [name for name in NOT_OF_THE_BASE if find_spec(name)]
    assert not odd, f"{odd}: not the base package alone"
    checks = (
        _draws_and_counts,
        _answers_ranges,
        _makes_and_prepares_a_dataset,
        _says_where_it_trains,
    )
    with tempfile.TemporaryDirectory() as folder:
        base = Base(Path(folder) / "home")
        for check in checks:
            check(base)
            print(f"ok {check.__name__.strip('_')}")
    print(f"{len(checks)} passed, 0 failed")


if __name__ == "__main__":
    main()
