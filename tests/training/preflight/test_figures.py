"""Figures of a preflight that need no ranks: exact values of formulas, tables and logs."""

from pathlib import Path

import pytest

from training.preflight.bandwidth import (
    Timing,
    message_sizes,
    pairs_of,
    repetitions,
    shown_us,
    size_text,
    table_lines,
)
from training.preflight.clocks import ClockDifference, Reading, clock_difference
from training.preflight.infiniband import parsed_rate, ports
from training.preflight.machine import differences
from training.preflight.nccl_log import nccl_way
from training.preflight.read_rate import Read, files_below, rate_mb_per_s, read_files
from training.preflight.synthetic import Synthetic, Trained, speed_line
from training.preflight.topology import parsed_gpus, parsed_topology


def test_bus_bandwidth_is_that_of_nccl_tests() -> None:
    """256 MB over 16 ranks in 88,376 us: 3.04 and 5.70 GB/s, as all_reduce_perf has printed it."""
    timing = Timing(268_435_456, 88_376e-6, 16)
    assert round(timing.algbw, 2) == 3.04
    assert round(timing.busbw, 2) == 5.70
    assert Timing(1000, 1e-6, 2).busbw == Timing(1000, 1e-6, 2).algbw == pytest.approx(1.0)
    assert Timing(1000, 1e-6, 1).busbw == 0


def test_the_table_has_columns_of_nccl_tests() -> None:
    """Size, elements, type, operation, time, both bandwidths, wrong elements; and the mean."""
    lines = table_lines([Timing(8, 78.92e-6, 16), Timing(1 << 26, 22_060e-6, 16, wrong=3)])
    assert [line.split() for line in lines[2:4]] == [
        ["8", "2", "float", "sum", "78.92", "0.00", "0.00", "0"],
        ["67108864", "16777216", "float", "sum", "22060", "3.04", "5.70", "3"],
    ]
    assert lines[4:] == ["# Out of bounds values : 3", "# Avg bus bandwidth    : 2.8521"]
    assert [shown_us(seconds) for seconds in (9.999e-6, 107.54e-6, 1068.4e-6, 0.1)] == [
        "10.00", "107.5", "1068.4", "100000",
    ]  # fmt: skip


def test_sizes_double_up_to_the_largest() -> None:
    """From 8 bytes on; and half a second bounds the repetitions."""
    sizes = message_sizes(64)
    assert (sizes[0], sizes[1], sizes[-1], len(sizes)) == (8, 16, 64 << 20, 24)
    assert [repetitions(first_s) for first_s in (0.0, 0.05, 0.1, 9.0)] == [20, 10, 5, 2]
    assert [size_text(size) for size in (8, 1 << 10, 3 << 19, 1 << 26)] == [
        "8 B", "1 kB", "1.5 MB", "64 MB",
    ]  # fmt: skip


def test_pairs_are_all_or_a_ring() -> None:
    """28 pairs of 8 ranks; of 9 the ring, which passes every machine's border."""
    assert pairs_of(1) == []
    assert pairs_of(3) == [(0, 1), (0, 2), (1, 2)]
    assert len(pairs_of(8)) == 28
    assert pairs_of(9) == [(a, (a + 1) % 9) for a in range(9)]


def test_a_clock_lies_where_all_rounds_allow() -> None:
    """A clock 5 ms ahead, by a slow round and a fast one whose halves differ."""
    ms = 1_000_000
    rounds = [Reading(0, 5 * ms + 9 * ms, 10 * ms), Reading(100 * ms, 106 * ms, 102 * ms)]
    # 14-10..14-0 and 106-102..106-100: both allow 4 to 6 ms.
    assert clock_difference(rounds) == ClockDifference(0.005, 0.001)
    behind = clock_difference([Reading(10 * ms, 0, 12 * ms)])
    assert (behind.ahead_s, behind.bound_s) == (-0.011, 0.001)
    assert behind.least_s == pytest.approx(0.01)
    assert ClockDifference(0.001, 0.002).least_s == 0.0


def test_a_clock_that_was_set_meanwhile_is_that_of_the_shortest_round() -> None:
    """No difference is in both rounds."""
    jumped = [Reading(0, 500, 10), Reading(100, 105, 104)]
    assert clock_difference(jumped) == ClockDifference(3e-9, 2e-9)


IB_LOG = """\
w-0:30:30 [0] NCCL INFO Bootstrap : Using eth0:10.131.4.63<0>
w-0:30:30 [0] NCCL INFO NET/IB : Using [0]mlx5_3:1/IB [1]mlx5_2:1/IB ; OOB eth0:10.131.4.63<0>
NCCL version 2.21.5+cuda12.4
w-0:30:39 [0] NCCL INFO Ring 00 : 10[89000] -> 11[89000] [receive] via NET/IB/0/GDRDMA
w-0:30:39 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[2] [send] via NET/IB/1
w-0:30:39 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM
w-0:30:39 [0] NCCL INFO Channel 02/0 : 0[0] -> 1[1] via P2P/IPC
"""
TCP_LOG = """\
w-0:30:30 [0] NCCL INFO NET/IB : No device found.
w-0:30:30 [0] NCCL INFO NET/Socket : Using [0]eth0:10.128.7.148<0>
w-0:30:39 [0] NCCL INFO Channel 00 : 1[1] -> 0[0] [receive] via NET/Socket/0
"""


def test_nccl_says_by_which_way_it_exchanges() -> None:
    """RDMA with and without GPUDirect in one log: the slower one counts."""
    way = nccl_way(IB_LOG.splitlines())
    assert (way.version, way.network, way.ports) == ("2.21.5", "IB", ("mlx5_3", "mlx5_2"))
    assert way.channels == {"NET/IB/GDRDMA": 1, "NET/IB": 1, "P2P": 2}
    assert way.crosses_by == "NET/IB"
    assert IB_LOG.splitlines()[3] in way.proof
    tcp = nccl_way(TCP_LOG.splitlines())
    assert (tcp.network, tcp.ports, tcp.crosses_by) == ("Socket", ("eth0",), "NET/Socket")
    assert TCP_LOG.splitlines()[0] in tcp.proof
    assert nccl_way(["step 1", "loss via NET/IB"]).crosses_by == ""


TOPOLOGY = (
    "\t\x1b[4mGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV18\tPXB\tSYS\t0-15\t0\t\tN/A\n"
    "GPU1\tNV18\t X \tNODE\tSYS\t0-15\t0\t\tN/A\n"
    "NIC0\tPXB\tNODE\t X \tSYS\t\t\t\t\n"
    "NIC1\tSYS\tSYS\tSYS\t X \t\t\t\t\n\n"
    "Legend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe and NUMA\n\n"
    "NIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n"
)


def test_the_topology_of_nvidia_smi() -> None:
    """Ways of ordered pairs, and the devices below each GPU's own switch."""
    topology = parsed_topology(TOPOLOGY)
    assert topology.names == ("GPU0", "GPU1", "NIC0", "NIC1")
    assert topology.ways["GPU0", "GPU1"] == "NV18"
    assert topology.ways["NIC1", "GPU0"] == "SYS"
    assert ("GPU0", "GPU0") not in topology.ways
    assert topology.nearest_nics == {"GPU0": ["NIC0"], "GPU1": []}
    assert parsed_topology("no devices were found\n").names == ()
    row = "0, NVIDIA H200, 00000000:1B:00.0, 143771, 570.86.15, 5, 16\n"
    (gpu,) = parsed_gpus(row + "short, row\n")
    assert (gpu["name"], gpu["pcie.link.width.current"]) == ("NVIDIA H200", "16")


IB_WRITE = """\
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      5000             98.02              97.61              0.186175
---------------------------------------------------------------------------------------
"""


def test_ports_and_the_rate_between_them(tmp_path: Path) -> None:
    """An active port, one that is down, and what ib_write_bw printed."""
    for name, state, rate in (("mlx5_0", "4: ACTIVE", "100 Gb/sec (4X EDR)"),
                              ("mlx5_1", "1: DOWN", "")):  # fmt: skip
        port = tmp_path / name / "ports" / "1"
        port.mkdir(parents=True)
        (port / "state").write_text(state + "\n")
        (port / "link_layer").write_text("InfiniBand\n")
        if rate:
            (port / "rate").write_text(rate + "\n")
    first, second = ports(tmp_path)
    assert (first.device, first.is_active, first.gbit_per_s) == ("mlx5_0", True, 100.0)
    assert (second.is_active, second.gbit_per_s, second.layer) == (False, 0.0, "InfiniBand")
    assert ports(tmp_path / "none") == []
    assert parsed_rate(IB_WRITE) == 97.61
    assert parsed_rate("Unable to init the socket connection\n") is None


def test_versions_that_differ_are_named_with_their_ranks() -> None:
    """What is the same is not; what one rank lacks is."""
    versions = ({"numpy": "1.26.4", "horovod": "0.28.1", "torch": "2.1"},
                {"numpy": "1.26.4", "horovod": "0.28.0"},
                {"numpy": "1.26.4", "horovod": "0.28.1"})  # fmt: skip
    ranks = [{"rank": rank, "versions": each} for rank, each in enumerate(versions)]
    assert differences(ranks) == {
        "horovod": {"0.28.1": [0, 2], "0.28.0": [1]},
        "torch": {"2.1": [0], "none": [1, 2]},
    }
    assert differences(ranks[:1]) == {}


def test_ranks_read_their_own_parts(tmp_path: Path) -> None:
    """Of files by name; empty ones and links do not count, and one that is gone is named."""
    for name, size in (("b", 5), ("a", 3), ("c", 7), ("empty", 0)):
        (tmp_path / name).write_bytes(b"x" * size)
    (tmp_path / "link").symlink_to("a")
    paths = files_below(tmp_path)
    assert [Path(path).name for path in paths] == ["a", "b", "c"]
    assert files_below(tmp_path, most=1) == paths[:1]
    reads = [read_files(paths, rank, 2) for rank in range(2)]
    assert [(read.files, read.n_bytes, read.error) for read in reads] == [(2, 10, ""), (1, 5, "")]
    gone = str(tmp_path / "gone")
    assert read_files([gone], 0, 1).error == f"{gone}: No such file or directory"
    with pytest.raises(FileNotFoundError):
        files_below(tmp_path / "none")
    assert rate_mb_per_s([Read(1, 3_000_000, 2.0), Read(1, 1_000_000, 0.5)]) == 2.0
    assert rate_mb_per_s([Read(0, 0, 0.1)]) == 0.0


def test_speeds_are_told_as_the_benchmark_tells_them() -> None:
    """Mean, standard error, jitter; efficiency is what the exchange leaves."""
    line = speed_line(10, [90.0, 100.0, 110.0, 100.0], 7.25)
    assert line == "10\timages/sec: 100.0 +/- 3.5 (jitter = 7.4)\t7.250"
    trained = Synthetic((Trained(120.0, 90.0, 7.0, "float32"), Trained(80.0, 90.0, 7.0, "float32")))
    assert (trained.images_per_s, trained.efficiency) == (180.0, 0.9)
