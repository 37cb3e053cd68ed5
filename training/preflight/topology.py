"""GPUs of this machine, and the ways between them, as nvidia-smi tells them.

Source: docs.nvidia.com/deploy/nvidia-smi: --query-gpu, topo -m (X, NV#, PIX, PXB, PHB, NODE, SYS)
"""

import csv
import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import Any

QUERY = (
    "index", "name", "pci.bus_id", "memory.total", "driver_version", "pcie.link.gen.current",
    "pcie.link.width.current",
)  # fmt: skip
_LONGEST_S = 30
_WAY = re.compile(r"X|NV\d+|PIX|PXB|PHB|NODE|SYS")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Topology:
    """Ways between GPUs and network devices of a machine."""

    names: tuple[str, ...]
    """GPU0, GPU1, NIC0 or mlx5_0..."""
    ways: dict[tuple[str, str], str]
    """Way of each ordered pair: NV2, PIX, SYS..."""

    @property
    def gpus(self) -> tuple[str, ...]:
        """Names of GPUs."""
        return tuple(name for name in self.names if name.startswith("GPU"))

    @property
    def nearest_nics(self) -> dict[str, list[str]]:
        """Network devices below the same PCIe switch as each GPU (PIX, PXB): GPUDirect is fast."""
        others = [name for name in self.names if not name.startswith("GPU")]
        return {
            gpu: [nic for nic in others if self.ways.get((gpu, nic)) in ("PIX", "PXB")]
            for gpu in self.gpus
        }


def parsed_topology(text: str) -> Topology:
    """The matrix that ``nvidia-smi topo -m`` prints; empty where the text has none."""
    rows = [_COLOURS.sub("", line).split("\t") for line in text.splitlines()]
    rows = [[cell.strip() for cell in row] for row in rows]
    head = next((row for row in rows if row[1:2] and row[1].startswith("GPU0")), [])
    known = {row[0] for row in rows if len(row) > 1 and _WAY.fullmatch(row[1])}
    columns = [cell for cell in head[1:] if cell in known]
    ways = {
        (row[0], column): way
        for row in rows
        if row[0] in columns
        for column, way in zip(columns, row[1:], strict=False)
        if _WAY.fullmatch(way) and way != "X"
    }
    return Topology(tuple(columns), ways)


def parsed_gpus(text: str) -> list[dict[str, str]]:
    """The GPUs that nvidia-smi's query for QUERY prints as CSV without units, by QUERY's names."""
    rows = csv.reader(text.splitlines(), skipinitialspace=True)
    return [dict(zip(QUERY, row, strict=True)) for row in rows if len(row) == len(QUERY)]


def machine_gpus() -> dict[str, Any]:
    """This machine's GPUs as JSON; empty lists where nvidia-smi is not there or does not answer."""
    query = ("nvidia-smi", f"--query-gpu={','.join(QUERY)}", "--format=csv,noheader,nounits")
    topology = parsed_topology(_output("nvidia-smi", "topo", "-m"))
    return {
        "gpus": parsed_gpus(_output(*query)),
        "ways": [[*pair, way] for pair, way in topology.ways.items()],
        "nearest_nics": topology.nearest_nics,
    }


def _output(*command: str) -> str:
    if shutil.which(command[0]) is None:
        return ""
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=_LONGEST_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ended.stdout if ended.returncode == 0 else ""
