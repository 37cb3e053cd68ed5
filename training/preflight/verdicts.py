"""What the figures of a preflight mean, a line each, and what to look at where one is low."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from training.preflight.bandwidth import Timing, size_text
from training.preflight.clocks import ClockDifference
from training.preflight.machine import SHARED_MEMORY, differences
from training.preflight.measure import PairRate, PlaceRead
from training.preflight.nccl_log import NcclWay
from training.preflight.read_rate import rate_mb_per_s

OK, WARNING = "ok", "warning"

_CLOCKS_S = 1.0
"""Difference of clocks above which a warning stands: leases and logs are compared in seconds."""
_SHM_BYTES = 1 << 30
"""Size of /dev/shm below which a warning stands: a container has 64 MB if nobody asks for more."""
_SLOW_PAIR = 0.5
"""Share of the median below which a pair is slow."""
_IB_SHARE = 0.8
"""Share of a link's rate that ib_write_bw reaches on a sound one."""


@dataclass(frozen=True)
class Verdict:
    """One line."""

    level: str
    """OK or WARNING."""
    line: str


@dataclass(frozen=True)
class Findings:
    """All that the ranks found."""

    ranks: Sequence[Mapping[str, Any]]
    """What each said of its machine (training.preflight.machine)."""
    way: str
    """What carries the messages: "NCCL", "Gloo" or "MPI"."""
    timings: Sequence[Timing] = ()
    pairs: Sequence[PairRate] = ()
    clocks: Sequence[ClockDifference] = ()
    reads: Sequence[PlaceRead] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
    """Why a place of the dataset was not read, by its name."""
    nccl: NcclWay = field(default_factory=NcclWay)
    infiniband: Mapping[str, float | None] = field(default_factory=dict)
    """What ib_write_bw measured to each machine [Gb/s]; None where it failed."""

    @property
    def nodes(self) -> dict[str, list[Mapping[str, Any]]]:
        """The ranks of each machine."""
        nodes: dict[str, list[Mapping[str, Any]]] = {}
        for rank in self.ranks:
            nodes.setdefault(rank["node"], []).append(rank)
        return nodes

    @property
    def transport(self) -> str:
        """What carries messages between machines, or on the one there is, in words."""
        if self.way == "NCCL":
            return {
                "NET/IB/GDRDMA": "RDMA with GPUDirect",
                "NET/IB": "RDMA through the hosts' memory",
                "NET/Socket": "TCP, not RDMA",
                "": "NCCL within the machine" if len(self.nodes) == 1 else "NCCL, by no line known",
            }.get(self.nccl.crosses_by, self.nccl.crosses_by)
        if self.way == "Gloo":
            return "Gloo over TCP" + ("" if len(self.nodes) > 1 else ", within the machine")
        return self.way


def verdicts(findings: Findings) -> list[Verdict]:
    """The lines, in the order of the measurements."""
    return [
        *_exchange(findings), *_pairs(findings), *_infiniband(findings), *_places(findings),
        *_clocks(findings), *_versions(findings), *_limits(findings), *_gpus(findings),
    ]  # fmt: skip


def _exchange(findings: Findings) -> Iterator[Verdict]:
    if not findings.timings or len(findings.ranks) < 2:
        yield Verdict(OK, "one rank: nothing is exchanged; --ranks 2 or more measures it")
        return
    if wrong := [each for each in findings.timings if each.wrong]:
        sizes = ", ".join(size_text(each.size_bytes) for each in wrong)
        yield Verdict(WARNING, f"allreduce of {sizes}: the sum is wrong; trust no training here")
    largest = findings.timings[-1]
    line = (
        f"allreduce of {size_text(largest.size_bytes)} at {largest.busbw:.2g} GB/s: "
        f"{findings.transport}"
    )
    advice = _advice(findings)
    yield Verdict(WARNING, f"{line}; {advice}") if advice else Verdict(OK, line)


def _advice(findings: Findings) -> str:
    """What to check where the exchange is not by the fastest way; empty where it is."""
    has_gpus = any(rank["gpus"] for rank in findings.ranks)
    links = [port for rank in findings.ranks for port in rank["ports"] if port["is_active"]]
    is_spread = len(findings.nodes) > 1
    if has_gpus and findings.way != "NCCL":
        return "check that Horovod was built with NCCL (HOROVOD_GPU_OPERATIONS=NCCL)"
    if findings.way == "NCCL" and is_spread:
        if findings.nccl.crosses_by == "NET/Socket":
            return (
                "check NCCL_IB_DISABLE, that the ranks see /dev/infiniband (rdma/* of a pod, "
                "IPC_LOCK), and NCCL_IB_HCA"
            )
        if findings.nccl.crosses_by == "NET/IB":
            return "check that nvidia_peermem is loaded, and NCCL_NET_GDR_LEVEL"
        return ""
    if links and is_spread:
        names = ", ".join(dict.fromkeys(port["device"] for port in links))
        return f"{names} is active and unused: check that Horovod was built with NCCL or MPI for it"
    return ""


def _pairs(findings: Findings) -> Iterator[Verdict]:
    node_of = {rank["rank"]: rank["node"] for rank in findings.ranks}
    groups: dict[str, list[PairRate]] = {"within a machine": [], "between machines": []}
    for pair in findings.pairs:
        same = node_of[pair.source] == node_of[pair.target]
        groups["within a machine" if same else "between machines"].append(pair)
    for where, rates in groups.items():
        if not rates:
            continue
        median = statistics.median(each.gb_per_s for each in rates)
        slow = [each for each in rates if each.gb_per_s < _SLOW_PAIR * median]
        line = f"pairs {where}: median {median:.2g} GB/s of {len(rates)}"
        if slow:
            worst = min(slow, key=lambda each: each.gb_per_s)
            yield Verdict(
                WARNING,
                f"{line}; {len(slow)} below half of it, the slowest {worst.source} to "
                f"{worst.target} ({node_of[worst.source]} to {node_of[worst.target]}) at "
                f"{worst.gb_per_s:.2g} GB/s: check its link",
            )
        else:
            yield Verdict(OK, line)


def _infiniband(findings: Findings) -> Iterator[Verdict]:
    ports = [(rank["node"], port) for rank in findings.ranks for port in rank["ports"]]
    down = [f"{port['device']} of {node}" for node, port in ports if not port["is_active"]]
    if down:
        yield Verdict(WARNING, f"InfiniBand: {', '.join(down)} is not active; check its cable")
    active = [port for _, port in ports if port["is_active"]]
    has_tool = any(rank["has_ib_write_bw"] for rank in findings.ranks)
    if active and not has_tool and len(findings.nodes) > 1:
        yield Verdict(OK, "InfiniBand: ib_write_bw is not installed (perftest), so not measured")
    for node, rate in findings.infiniband.items():
        if rate is None:
            yield Verdict(WARNING, f"ib_write_bw to {node}: measured nothing; run it by hand there")
            continue
        link = max(port["gbit_per_s"] for port in active)
        line = f"ib_write_bw to {node}: {rate:.4g} Gb/s of {link:g}"
        is_low = link and rate < _IB_SHARE * link
        yield (
            Verdict(WARNING, f"{line}; check cable, switch and PCIe width")
            if is_low
            else (Verdict(OK, line))
        )


def _places(findings: Findings) -> Iterator[Verdict]:
    for each in findings.reads:
        errors = {rank: read.error for rank, read in enumerate(each.reads) if read.error}
        if errors:
            rank, error = next(iter(errors.items()))
            yield Verdict(
                WARNING,
                f"{each.place}: {len(errors)} of {len(each.reads)} ranks cannot read it; rank "
                f"{rank}: {error}",
            )
            continue
        files = sum(read.files for read in each.reads)
        total = sum(read.n_bytes for read in each.reads)
        rate = rate_mb_per_s(each.reads)
        if not files:
            yield Verdict(WARNING, f"{each.place}: has no files to read")
            continue
        amount = f"{files:,} files, {total / 1e6:,.1f} MB"
        yield Verdict(OK, f"{each.place}: {rate:,.0f} MB/s for all ranks ({amount})")
    for place, why in findings.unread.items():
        yield Verdict(OK, f"{place}: not read: {why}")


def _clocks(findings: Findings) -> Iterator[Verdict]:
    if len(findings.clocks) < 2:
        return
    worst = max(range(len(findings.clocks)), key=lambda rank: findings.clocks[rank].least_s)
    clock = findings.clocks[worst]
    if clock.least_s > _CLOCKS_S:
        direction = "ahead of" if clock.ahead_s > 0 else "behind"
        node = findings.ranks[worst]["node"]
        yield Verdict(
            WARNING,
            f"clock of rank {worst} ({node}) is {abs(clock.ahead_s):.3g} s {direction} rank 0's, "
            f"within {clock.bound_s * 1e3:.2g} ms: check chrony or ntpd there",
        )
    else:
        most = max(abs(each.ahead_s) + each.bound_s for each in findings.clocks)
        yield Verdict(OK, f"clocks differ by {most * 1e3:.2g} ms at most")


def _versions(findings: Findings) -> Iterator[Verdict]:
    differing = differences(findings.ranks)
    for name, having in differing.items():
        told = "; ".join(
            f"{text} on ranks {', '.join(map(str, ranks))}" for text, ranks in having.items()
        )
        yield Verdict(WARNING, f"{name} differs: {told}")
    if not differing:
        yield Verdict(OK, f"versions are the same on {len(findings.ranks)} ranks")


def _limits(findings: Findings) -> Iterator[Verdict]:
    has_ports = any(rank["ports"] for rank in findings.ranks)
    locked = [rank for rank in findings.ranks if rank["memlock_bytes"] is not None]
    if has_ports and locked:
        least = min(rank["memlock_bytes"] for rank in locked)
        yield Verdict(
            WARNING,
            f"memlock is {size_text(least)} on {len(locked)} ranks, and RDMA locks what it sends: "
            "set it unlimited (ulimit -l, LimitMEMLOCK, or a pod's capability IPC_LOCK)",
        )
    small = [
        (node, ranks[0]["shm_bytes"])
        for node, ranks in findings.nodes.items()
        if len(ranks) > 1 and ranks[0]["shm_bytes"] < _SHM_BYTES
    ]
    for node, size in small:
        yield Verdict(
            WARNING,
            f"{SHARED_MEMORY} of {node} is {size_text(size)}, and its ranks exchange through it: "
            "give its container more (--shm-size, or an emptyDir of medium Memory)",
        )


def _gpus(findings: Findings) -> Iterator[Verdict]:
    of_node = {
        node: [gpu["name"] for rank in ranks for gpu in rank["gpus"]]
        for node, ranks in findings.nodes.items()
    }
    if not any(of_node.values()):
        return
    kinds = {tuple(names) for names in of_node.values()}
    told = "; ".join(f"{node} {_counted(names)}" for node, names in of_node.items())
    yield Verdict(OK if len(kinds) == 1 else WARNING, f"GPUs: {told}")
    for node, ranks in findings.nodes.items():
        if len(ranks) > len(of_node[node]):
            yield Verdict(
                WARNING,
                f"{node} has {len(ranks)} ranks and {len(of_node[node])} GPUs: ranks share one, or "
                "have none; ask for --resource gpus=1, or fewer ranks_per_node",
            )


def _counted(names: Sequence[str]) -> str:
    counts = {name: names.count(name) for name in names}
    return ", ".join(f"{count} x {name}" for name, count in counts.items()) or "none"
