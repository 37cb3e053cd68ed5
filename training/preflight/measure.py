"""Measures the exchange, the reads and the clocks of ranks; all of them call each function."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from training.preflight import infiniband
from training.preflight.bandwidth import (
    ELEMENT_BYTES,
    Timing,
    message_sizes,
    pairs_of,
    repetitions,
)
from training.preflight.clocks import ClockDifference, Reading, clock_difference
from training.preflight.group import Group
from training.preflight.read_rate import Read, files_below, read_files

_ROUNDS = 20
_PAIR_BYTES = 16 << 20
_PAIR_TRIES = 3
"""The fastest counts: what else the machines do is no property of the link."""


@dataclass(frozen=True)
class PairRate:
    """The rate of one message from a rank to another."""

    source: int
    target: int
    size_bytes: int
    seconds: float

    @property
    def gb_per_s(self) -> float:
        """The rate [GB/s]."""
        return self.size_bytes / self.seconds / 1e9


@dataclass(frozen=True)
class PlaceRead:
    """What ranks read of one place."""

    place: str
    """"cache", "source" or "path"."""
    reads: list[Read]
    """Of each rank."""


def shared(group: Group, value: Any) -> list[Any]:
    """Every rank's value, as JSON has it, on every rank."""
    return [json.loads(text) for text in group.texts(json.dumps(value))]


def allreduce_timings(group: Group, largest_mib: int) -> list[Timing]:
    """The time of an allreduce of each message size, the mean over ranks and repetitions."""
    timings = []
    for size in message_sizes(largest_mib):
        buffer = group.buffer(size // ELEMENT_BYTES)
        group.allreduce(buffer)  # connects, and agrees on the name
        first_s, summed = _timed(lambda sent=buffer: group.allreduce(sent))  # type: ignore[misc]
        wrong = group.wrong(summed)
        count = max(shared(group, repetitions(first_s)))  # the same on all
        seconds, _ = _timed(
            lambda sent=buffer, n=count: [group.allreduce(sent) for _ in range(n)]  # type: ignore[misc]
        )
        of_ranks = shared(group, [seconds / count, wrong])
        mean = sum(each for each, _ in of_ranks) / group.size
        timings.append(Timing(size, mean, group.size, sum(each for _, each in of_ranks)))
    return timings


def pair_rates(group: Group, largest_mib: int) -> list[PairRate]:
    """The rate of one message between pairs of ranks, one pair after another, both ways."""
    size = min(_PAIR_BYTES, largest_mib << 20)
    buffer = group.buffer(size // ELEMENT_BYTES)
    rates = []
    for a, b in pairs_of(group.size):
        for source, target in ((a, b), (b, a)):
            group.transfer(buffer, source, target)  # connects
            tries = []
            for _ in range(_PAIR_TRIES):
                shared(group, None)  # all begin together
                seconds, _result = _timed(lambda s=source, t=target: group.transfer(buffer, s, t))  # type: ignore[misc]
                tries.append(shared(group, seconds)[target])
            rates.append(PairRate(source, target, size, min(tries)))
    return rates


def clock_differences(group: Group) -> list[ClockDifference]:
    """How far each rank's clock is ahead of the first's."""
    tick = group.buffer(1)
    rounds: list[tuple[int, int, int]] = []
    for _ in range(_ROUNDS):
        before = time.time_ns()
        group.allreduce(tick)
        own = time.time_ns()
        group.allreduce(tick)
        rounds.append((before, own, time.time_ns()))
    of_ranks = shared(group, rounds)
    others = [
        clock_difference(
            [
                Reading(first[0], other[1], first[2])
                for first, other in zip(of_ranks[0], of_rank, strict=True)
            ]
        )
        for of_rank in of_ranks[1:]
    ]
    return [ClockDifference(0.0, 0.0), *others]


def place_reads(
    group: Group, places: Mapping[str, Sequence[str]], path: Path | None
) -> list[PlaceRead]:
    """What all ranks read of each place, at once.

    Args:
        group: The ranks.
        places: Paths by the name of their place.
        path: A folder below which files are read, too.
    """
    of_all: dict[str, Callable[[], Sequence[str]]] = {
        name: lambda paths=paths: paths  # type: ignore[misc]
        for name, paths in places.items()
    }
    if path is not None:
        of_all["path"] = lambda: files_below(path)
    reads = []
    for name, list_of in of_all.items():
        try:
            paths, error = list_of(), ""
        except OSError as problem:
            paths, error = [], f"{problem.filename}: {problem.strerror}"
        shared(group, None)
        read = Read(0, 0, 0.0, error) if error else read_files(paths, group.rank, group.size)
        reads.append(PlaceRead(name, [Read(**each) for each in shared(group, asdict(read))]))
    return reads


def infiniband_rates(group: Group, ranks: Sequence[dict[str, Any]]) -> dict[str, float | None]:
    """What ib_write_bw measures from the first rank's machine to each other one [Gb/s].

    Empty where fewer than two machines have an active port and the tool; None where a measurement
    failed.

    Args:
        group: The ranks.
        ranks: What each said of its machine.
    """
    able = [each for each in ranks if each["has_ib_write_bw"] and _active(each)]
    if not able or able[0]["rank"] != 0:
        return {}
    rates: dict[str, float | None] = {}
    for far in able[1:]:
        server = infiniband.serve(_active(far)) if group.rank == far["rank"] else None
        time.sleep(1.0)  # it has no other sign that it listens
        shared(group, None)
        rate = None
        if group.rank == 0:
            rate = infiniband.measure(_active(ranks[0]), far["address"])
        rates[far["node"]] = shared(group, rate)[0]
        if server is not None:
            infiniband.end(server)
    return rates


def _active(rank: dict[str, Any]) -> str:
    """The first active device that a rank told of; empty for none."""
    return next((port["device"] for port in rank["ports"] if port["is_active"]), "")


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result
