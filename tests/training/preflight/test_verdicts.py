"""Verdicts of a preflight: which line a finding makes, and when it warns."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from training.preflight.bandwidth import Timing
from training.preflight.clocks import ClockDifference
from training.preflight.measure import PairRate, PlaceRead
from training.preflight.nccl_log import NcclWay
from training.preflight.read_rate import Read
from training.preflight.report import result
from training.preflight.verdicts import OK, WARNING, Findings, verdicts

GPU = {"name": "Tesla V100-SXM2-16GB"}
PORT = {
    "device": "mlx5_0", "port": 1, "is_active": True, "gbit_per_s": 100.0, "layer": "InfiniBand",
}  # fmt: skip


def rank(number: int, node: str, **more: Any) -> dict[str, Any]:
    """What a rank of a sound machine says."""
    return {
        "rank": number, "node": node, "device": "CPU", "versions": {"numpy": "1.26.4"},
        "memlock_bytes": None, "shm_bytes": 64 << 30, "gpus": [], "ports": [],
        "has_ib_write_bw": False, **more,
    }  # fmt: skip


def lines_of(ranks: Sequence[Mapping[str, Any]], way: str = "Gloo", **more: Any) -> dict[str, str]:
    """Levels by line, of an allreduce of 64 MB at 0.9 GB/s and what else was found."""
    timings = [Timing(8, 1e-3, len(ranks)), Timing(1 << 26, (1 << 26) / 0.9e9, 2)]
    findings = Findings(ranks, way, more.pop("timings", timings), **more)
    return {each.line: each.level for each in verdicts(findings)}


TWO = (rank(0, "a"), rank(1, "b"))


def test_nothing_is_wrong() -> None:
    """Gloo on machines without GPUs and InfiniBand."""
    assert lines_of(TWO) == {
        "allreduce of 64 MB at 0.9 GB/s: Gloo over TCP": OK,
        "versions are the same on 2 ranks": OK,
    }
    within = lines_of((rank(0, "a"), rank(1, "a")))
    assert "allreduce of 64 MB at 0.9 GB/s: Gloo over TCP, within the machine" in within
    (alone, _) = lines_of((rank(0, "a"),))
    assert alone.startswith("one rank: nothing is exchanged")


@pytest.mark.parametrize(
    ("channels", "words", "level"),
    [
        ({"NET/Socket": 2}, "TCP, not RDMA; check NCCL_IB_DISABLE", WARNING),
        ({"NET/IB": 2}, "RDMA through the hosts' memory; check that nvidia_peermem", WARNING),
        ({"NET/IB/GDRDMA": 2}, "RDMA with GPUDirect", OK),
        ({"NET/IB/GDRDMA": 2, "NET/Socket": 1}, "TCP, not RDMA; check", WARNING),
    ],
)
def test_the_way_between_machines(channels: dict[str, int], words: str, level: str) -> None:
    """Of several the slowest, with what to check where it is not the fastest."""
    ranks = (rank(0, "a", gpus=[GPU], ports=[PORT]), rank(1, "b", gpus=[GPU], ports=[PORT]))
    lines = lines_of(ranks, "NCCL", nccl=NcclWay(channels=channels))
    (line,) = (line for line in lines if line.startswith("allreduce"))
    assert line.startswith(f"allreduce of 64 MB at 0.9 GB/s: {words}")
    assert lines[line] == level
    assert lines["GPUs: a 1 x Tesla V100-SXM2-16GB; b 1 x Tesla V100-SXM2-16GB"] == OK


def test_hardware_that_is_not_used() -> None:
    """GPUs without NCCL, and InfiniBand that Gloo does not use; on one machine none is needed."""
    gpus = (rank(0, "a", gpus=[GPU]), rank(1, "b", gpus=[GPU]))
    assert any("HOROVOD_GPU_OPERATIONS=NCCL" in line for line in lines_of(gpus))
    links = (rank(0, "a", ports=[PORT]), rank(1, "b", ports=[PORT]))
    (line,) = (line for line in lines_of(links) if "allreduce" in line)
    assert "mlx5_0 is active and unused" in line
    one = (rank(0, "a", ports=[PORT]), rank(1, "a"))
    assert not any("unused" in line for line in lines_of(one))


def test_a_wrong_sum_is_the_first_line() -> None:
    """And names its sizes alone."""
    timings = [Timing(8, 1.0, 2), Timing(16, 1.0, 2, wrong=4)]
    first = next(iter(lines_of(TWO, timings=timings).items()))
    assert first == ("allreduce of 16 B: the sum is wrong; trust no training here", WARNING)


def test_slow_pairs_are_named() -> None:
    """Among those of their kind: what is within a machine is faster anyway."""
    ranks = (rank(0, "a"), rank(1, "a"), rank(2, "b"), rank(3, "b"))
    speeds = {(0, 1): 40, (2, 3): 40, (0, 2): 10, (1, 2): 10, (0, 3): 10, (1, 3): 2}
    pairs = [PairRate(a, b, 10**9, 1 / speed) for (a, b), speed in speeds.items()]
    lines = lines_of(ranks, pairs=pairs)
    assert lines["pairs within a machine: median 40 GB/s of 2"] == OK
    assert lines[
        "pairs between machines: median 10 GB/s of 4; 1 below half of it, the slowest 1 to 3 "
        "(a to b) at 2 GB/s: check its link"
    ] == WARNING  # fmt: skip


def test_infiniband_links() -> None:
    """A port that is down, a rate below the link's, a measurement that failed, a tool not there."""
    down = {**PORT, "device": "mlx5_1", "is_active": False}
    ranks = [rank(n, node, ports=[PORT, down] if n else [PORT], has_ib_write_bw=True)
             for n, node in enumerate("abc")]  # fmt: skip
    lines = lines_of(ranks, infiniband={"b": 97.61, "c": 40.0})
    assert lines["InfiniBand: mlx5_1 of b, mlx5_1 of c is not active; check its cable"] == WARNING
    assert lines["ib_write_bw to b: 97.61 Gb/s of 100"] == OK
    assert lines["ib_write_bw to c: 40 Gb/s of 100; check cable, switch and PCIe width"] == WARNING
    failed = lines_of(ranks, infiniband={"b": None})
    assert failed["ib_write_bw to b: measured nothing; run it by hand there"] == WARNING
    without = lines_of([rank(n, node, ports=[PORT]) for n, node in enumerate("ab")])
    assert "InfiniBand: ib_write_bw is not installed (perftest), so not measured" in without


def test_reads_clocks_and_limits() -> None:
    """Each with the rank that it is of."""
    small = rank(2, "c", shm_bytes=64 << 20)
    ranks = (
        rank(0, "a", ports=[PORT], memlock_bytes=64 << 10), rank(1, "b"), small,
        {**small, "rank": 3, "versions": {"numpy": "1.26.3"}},
    )  # fmt: skip
    read, refused = Read(2, 4_000_000, 2.0), Read(0, 0, 0.0, "/x: Permission denied")
    lines = lines_of(
        ranks,
        reads=[PlaceRead("source", [read] * 4), PlaceRead("path", [read, refused, read, read]),
               PlaceRead("cache", [Read(0, 0, 0.0)] * 4)],
        unread={"cache": "city@1 is not staged"},
        clocks=[ClockDifference(0, 0), ClockDifference(-2.5, 0.001), ClockDifference(0.4, 0.001),
                ClockDifference(1.5, 1.0)],
    )  # fmt: skip
    assert lines["source: 8 MB/s for all ranks (8 files, 16.0 MB)"] == OK
    assert lines["path: 1 of 4 ranks cannot read it; rank 1: /x: Permission denied"] == WARNING
    assert lines["cache: has no files to read"] == WARNING
    assert lines["cache: not read: city@1 is not staged"] == OK
    clock = "clock of rank 1 (b) is 2.5 s behind rank 0's, within 1 ms: check chrony or ntpd there"
    assert lines[clock] == WARNING
    assert lines["numpy differs: 1.26.4 on ranks 0, 1, 2; 1.26.3 on ranks 3"] == WARNING
    warned = [line.partition(" is ")[0] for line in lines if " is 64 " in line]
    assert warned == ["memlock", "/dev/shm of c"]
    near = lines_of(TWO, clocks=[ClockDifference(0, 0), ClockDifference(0.4, 0.001)])
    assert near["clocks differ by 4e+02 ms at most"] == OK


def test_ranks_that_share_a_gpu() -> None:
    """And machines that have others."""
    ranks = (rank(0, "a", gpus=[GPU]), rank(1, "a"), rank(2, "b", gpus=[{"name": "A100"}]))
    lines = lines_of(ranks, "NCCL")
    assert lines["GPUs: a 1 x Tesla V100-SXM2-16GB; b 1 x A100"] == WARNING
    assert [level for line, level in lines.items() if "a has 2 ranks and 1 GPUs" in line] == [
        WARNING
    ]
    assert not any("b has" in line for line in lines)


def test_the_result_of_one_rank_and_of_two() -> None:
    """Warnings apart; figures of an exchange where there is one."""
    alone = Findings((rank(0, "a"),), "Gloo")
    of_one = result(alone, verdicts(alone), None)
    assert [table["title"] for table in of_one["tables"]] == ["Verdicts", "Ranks"]
    assert "allreduce_busbw_gb_per_s" not in of_one
    pairs = [PairRate(0, 1, 10**9, 2.0), PairRate(1, 0, 10**9, 4.0)]
    both = Findings(
        TWO, "Gloo", [Timing(8, 1e-3, 2), Timing(1 << 20, 0.01, 2)], pairs,
        [ClockDifference(0, 0), ClockDifference(0.002, 0.001)],
    )  # fmt: skip
    of_two = result(both, verdicts(both), None)
    assert of_two["slowest_pair_gb_per_s"] == 0.25
    assert (of_two["allreduce_latency_us"], of_two["clock_difference_ms"]) == (1000.0, 3.0)
    assert of_two["allreduce_busbw_gb_per_s"] == round((1 << 20) / 0.01 / 1e9, 4)
    assert of_two["warnings"] == []
    assert [table["title"] for table in of_two["tables"]] == [
        "Verdicts", "Allreduce", "Pairs", "Ranks",
    ]  # fmt: skip
