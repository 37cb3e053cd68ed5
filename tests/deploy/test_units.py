"""deploy/systemd: units as systemd reads them, and how locked in their processes are."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.api.servers import FRAMESIFT
from tests.deploy.deployed import DEPLOY

_UNITS = DEPLOY / "systemd"
_EXPOSED = 2.0
"""The most that `systemd-analyze security` may say, of 10; a unit without hardening has 9.6."""

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)


def copied(folder: Path) -> Path:
    """The units, with this environment's program in place of the installed one."""
    units = folder / "units"
    shutil.copytree(_UNITS, units)
    for unit in units.glob("*.service"):
        text = unit.read_text("utf-8")
        assert "/opt/framesift/bin/framesift " in text
        unit.write_text(text.replace("/opt/framesift/bin/framesift", str(FRAMESIFT)), "utf-8")
    return units


def analyzed(units: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """What systemd-analyze says of units in a folder, and of the system's."""
    return subprocess.run(
        ["systemd-analyze", "--no-pager", *words], cwd=units, capture_output=True, text=True,
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{units}:"}, check=False,
    )  # fmt: skip


@needs_systemd
def test_systemd_reads_the_units(tmp_path: Path) -> None:
    """Without a word about any; a misspelled line is told."""
    units = copied(tmp_path)
    files = sorted(path.name for path in units.iterdir() if path.is_file() and
                   path.suffix in (".service", ".timer"))  # fmt: skip
    assert len(files) == 6
    done = analyzed(units, "verify", "--man=no", *files)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    server = units / "framesift-server.service"
    server.write_text(server.read_text("utf-8").replace("TimeoutStopSec", "TimeoutStop"), "utf-8")
    assert "TimeoutStop" in analyzed(units, "verify", "--man=no", server.name).stderr


@needs_systemd
def test_units_are_locked_in(tmp_path: Path) -> None:
    """All by the one drop-in: without it they are not."""
    units = copied(tmp_path)
    names = [path.name.replace("@.", "@frames.") for path in units.glob("*.service")]
    assert len(names) == 4

    def exposed(name: str) -> float:
        said = analyzed(units, "security", "--offline=true", "--threshold=100", name).stdout
        (level,) = re.findall(r"Overall exposure level for \S+: ([\d.]+)", said)
        return float(level)

    assert {name: exposed(name) for name in names if exposed(name) > _EXPOSED} == {}
    shutil.rmtree(units / "framesift-.service.d")
    assert exposed("framesift-server.service") > 9


def test_the_server_has_time_to_stop() -> None:
    """The manager waits longer than --drain and --shutdown-timeout take."""
    text = (_UNITS / "framesift-server.service").read_text("utf-8")
    (waits,) = re.findall(r"TimeoutStopSec=(\d+)", text)
    parts = re.findall(r"--(?:drain|shutdown-timeout) (\d+)", text)
    assert len(parts) == 2
    assert int(waits) > sum(map(int, parts))


def test_timers_start_units_that_are_there() -> None:
    """Each has a service of its name."""
    timers = list(_UNITS.glob("*.timer"))
    assert len(timers) == 2
    for timer in timers:
        assert timer.with_suffix(".service").exists()
