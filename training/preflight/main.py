"""One rank of a preflight: ``python -m training.preflight.main FOLDER FLAGS``; FOLDER is the job's.

Source: docs/decisions/0102-preflight.md
"""

import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalog.errors import JobFailed
from catalog.storage.atomic_write import atomic_write
from catalog.storage.bounded_file import parsed_json, read_bounded
from pipeline.runs.preflight_order import BATCH_SIZE, HOROVOD, LARGEST_MIB, STEPS, TORCH
from training.command import OneLineParser, exit_status, positive_int, say
from training.preflight.bandwidth import table_lines
from training.preflight.group import Group, HorovodGroup, TorchGroup
from training.preflight.machine import about_rank
from training.preflight.measure import (
    allreduce_timings,
    clock_differences,
    infiniband_rates,
    pair_rates,
    place_reads,
    shared,
)
from training.preflight.nccl_log import nccl_way
from training.preflight.report import document, result, tables, text_lines
from training.preflight.synthetic import Synthetic, train_synthetic
from training.preflight.verdicts import WARNING, Findings, verdicts
from training.strict_json import strict_json

RESULT, ALL = "result.json", "preflight.json"
_MOST_BYTES = 64 << 20


@dataclass(frozen=True)
class Asked:
    """What the flags say."""

    folder: Path
    through: str
    ranks: int
    largest_mib: int
    reads: Path | None
    path: Path | None
    synthetic: bool
    batch_size: int
    steps: int


def main(arguments: Sequence[str]) -> int:
    """Run with command line arguments; the exit status."""
    asked = _parsed(arguments)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    # Each rank reads its own lines back.
    log = asked.folder / f"nccl-{socket.gethostname()}-{os.getpid()}.log"
    os.environ.setdefault("NCCL_DEBUG", "INFO")
    os.environ["NCCL_DEBUG_FILE"] = str(log)
    return exit_status(lambda: _run(asked, log))


def _parsed(arguments: Sequence[str]) -> Asked:
    parser = OneLineParser(prog="training.preflight.main")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--through", choices=(HOROVOD, TORCH), default=HOROVOD)
    parser.add_argument("--ranks", type=positive_int, required=True)
    parser.add_argument("--largest_mib", type=positive_int, default=LARGEST_MIB)
    parser.add_argument("--reads", type=Path, help="JSON: paths by place")
    parser.add_argument("--path", type=Path, help="folder to read")
    parser.add_argument("--synthetic", action="store_true")
    parser.add_argument("--batch_size", type=positive_int, default=BATCH_SIZE)
    parser.add_argument("--steps", type=positive_int, default=STEPS)
    return Asked(**vars(parser.parse_args(arguments)))


def _run(asked: Asked, log: Path) -> None:
    group = _joined(asked)
    if group.size != asked.ranks:
        raise JobFailed(
            asked.folder.name,
            f"--ranks {asked.ranks}, but this process is one of {group.size}: its launcher did not "
            "join them",
        )
    own = about_rank(group.rank, group.local_rank, group.versions) | {"device": group.device}
    ranks = sorted(shared(group, own), key=lambda each: int(each["rank"]))
    is_first = group.rank == 0
    if is_first:
        nodes = ", ".join(dict.fromkeys(each["node"] for each in ranks))
        say(f"# ranks {len(ranks)}, on {nodes}, by {group.way}")
        for each in ranks:
            say(f"#   Rank {each['rank']:>2} Pid {each['pid']} on {each['node']} {each['device']}")
    is_several = group.size > 1
    timings = allreduce_timings(group, asked.largest_mib) if is_several else []
    if is_first and timings:
        for line in table_lines(timings):
            say(line)
    pairs = pair_rates(group, asked.largest_mib) if is_several else []
    clocks = clock_differences(group) if is_several else []
    places = {} if asked.reads is None else _read(asked.reads)
    lists = {name: paths for name, paths in places.items() if isinstance(paths, list)}
    unread = {name: why for name, why in places.items() if isinstance(why, str)}
    reads = place_reads(group, lists, asked.path)
    rates = infiniband_rates(group, ranks)
    nccl_lines = [line for lines in shared(group, _nccl_lines(log)) for line in lines]
    synthetic: Synthetic | None = None
    if asked.synthetic and isinstance(group, HorovodGroup):
        tell = say if is_first else _nothing
        synthetic = train_synthetic(group, asked.batch_size, asked.steps, tell)
    if not is_first:
        return
    findings = Findings(
        ranks, group.way, timings, pairs, clocks, reads, unread, nccl_way(nccl_lines), rates
    )
    _tell(asked.folder, findings, synthetic)


def _joined(asked: Asked) -> Group:
    if asked.through == TORCH:
        request = _read(asked.folder / "request.json")
        return TorchGroup(asked.folder, int(request.get("attempt", 1)))
    return HorovodGroup()


def _tell(folder: Path, findings: Findings, synthetic: Synthetic | None) -> None:
    lines = verdicts(findings)
    for table in tables(findings, lines, synthetic)[1:]:
        if table["title"] != "Allreduce":  # said above, as nccl-tests does
            for line in text_lines(table):
                say(line)
    for line in findings.nccl.proof:
        say(f"# {line}")
    for each in lines:
        say(f"warning: {each.line}" if each.level == WARNING else f"ok: {each.line}")
    atomic_write(folder / ALL, strict_json(document(findings, lines, synthetic)))
    atomic_write(folder / RESULT, strict_json(result(findings, lines, synthetic)))


def _nccl_lines(log: Path) -> list[str]:
    """NCCL's lines of this rank that say its way; the first hundred."""
    try:
        text = read_bounded(log, _MOST_BYTES).decode(errors="replace")
    except OSError:
        return []
    told = ("NCCL version", "NET/", " via ")
    return [line for line in text.splitlines() if any(word in line for word in told)][:100]


def _read(file: Path) -> dict[str, Any]:
    data = parsed_json(read_bounded(file, _MOST_BYTES))
    return data if isinstance(data, dict) else {}


def _nothing(_: str) -> None:
    """Say nothing: the first rank does."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
