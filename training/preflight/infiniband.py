"""InfiniBand ports of this machine, and the rate that ib_write_bw measures between two.

Source: kernel.org, Documentation/ABI/stable/sysfs-class-infiniband; perftest's ib_write_bw(1)
"""

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TOOL = "ib_write_bw"
_ROW = re.compile(r"^\s*(\d+)\s+(\d+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s*$", re.MULTILINE)
_RATE = re.compile(r"([\d.]+) Gb/sec")
_LONGEST_S = 60


@dataclass(frozen=True)
class Port:
    """A port of a device."""

    device: str
    port: int
    is_active: bool
    gbit_per_s: float
    """Of the link [Gb/s]; 0 where it is not told."""
    layer: str
    """InfiniBand, or Ethernet (RoCE)."""


def ports(root: Path = Path("/sys/class/infiniband")) -> list[Port]:
    """The ports of this machine by their devices' names; none where there are no devices."""
    found = []
    for folder in sorted(root.glob("*/ports/*")):
        rate = _RATE.match(_text(folder / "rate"))
        found.append(
            Port(
                folder.parent.parent.name,
                int(folder.name),
                _text(folder / "state").endswith("ACTIVE"),
                float(rate[1]) if rate else 0.0,
                _text(folder / "link_layer"),
            )
        )
    return found


def parsed_rate(text: str) -> float | None:
    """The average of ib_write_bw's last row with --report_gbits [Gb/s]; None where it has none."""
    rows = _ROW.findall(text)
    return float(rows[-1][3]) if rows else None


def is_installed() -> bool:
    """Return whether perftest is on PATH."""
    return shutil.which(TOOL) is not None


def serve(device: str) -> "subprocess.Popen[bytes]":
    """Start the far end of a measurement, which ends with it."""
    return subprocess.Popen(_command(device), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def measure(device: str, address: str) -> float | None:
    """The rate to the machine that serves at an address [Gb/s]; None where nothing was measured."""
    try:
        ended = subprocess.run(
            [*_command(device), address],
            capture_output=True,
            text=True,
            timeout=_LONGEST_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parsed_rate(ended.stdout)


def end(server: "subprocess.Popen[bytes]") -> None:
    """End the far end where nobody came."""
    try:
        server.wait(1)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _command(device: str) -> Sequence[str]:
    return (TOOL, "--report_gbits", "-F", "-d", device)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii").strip()
    except OSError:
        return ""
