"""Starts ranks of a program as tasks of a Slurm step, where Horovod's own launcher needs ssh.

    srun ... python -P -m training.slurm_ranks NOTES RANKS PER_TASK PROGRAM...

With PER_TASK 0 each task is a rank; else each task, one on a node, starts so many, RANKS in all.
With launcher:N, or launcher:N,M for nodes of N and M ranks, each task starts one process, which
itself starts the node's ranks (pipeline.jobs.program.rank --torchrun) and gets what the first of
them would. Each rank gets what Horovod's launcher would give it (HOROVOD_*), what PyTorch's would
(RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, NODE_RANK, MASTER_ADDR, MASTER_PORT), and what
pipeline.jobs.program.rank reads. The first task serves their rendezvous, and says where in a file
of the folder NOTES, which all nodes see. On one node it listens at loopback; on several at all
addresses, and authenticates none of them.

A task learns its place from Slurm's variables. Where there is no Slurm, the backend hosts
(pipeline.jobs.backends.hosts.placement) and training.node_tasks tell it by the same names with
FRAMESIFT_STEP_ for SLURM_, which ranks do not inherit; FRAMESIFT_STEP_STOP is a file that asks a
task to end its ranks once it is there.

Source: horovod 0.28.1, runner/gloo_run.py; Slurm's srun(1), output environment variables.
"""

import fcntl
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from catalog.storage.atomic_write import atomic_write

_WAIT_S = 300.0
_POLL_S = 0.1
_SIOCGIFADDR = 0x8915  # Source: netdevice(7)
_LOOPBACK = "127.0.0.1"
_SLURM, _OWN = "SLURM_", "FRAMESIFT_STEP_"
_LAUNCHER = "launcher:"


def step_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of a task of the step, by their names without prefix, such as PROCID."""
    prefix = _OWN if f"{_OWN}PROCID" in environment else _SLURM
    return {
        name.removeprefix(prefix): value
        for name, value in environment.items()
        if name.startswith(prefix)
    }


def ranks_on_nodes(ranks: int, per_task: int, variables: Mapping[str, str]) -> list[int]:
    """Ranks on each node of the step.

    Args:
        per_task: Ranks that each task starts, one task on a node; 0 where each task is a rank.
        variables: Of a task of the step (`step_variables`).
    """
    if per_task:
        nodes = int(variables["STEP_NUM_NODES"])
        return [min(per_task, ranks - node * per_task) for node in range(nodes)]
    counts = []
    for group in variables["STEP_TASKS_PER_NODE"].split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", group)
        if match is None:
            raise ValueError(f"STEP_TASKS_PER_NODE {group}: expected N or N(xM)")
        counts += [int(match[1])] * int(match[2] or 1)
    return counts


def rank_variables(counts: Sequence[int], node: int, local: int) -> dict[str, str]:
    """The place of one rank among all, as Horovod and PyTorch name it.

    Args:
        counts: Ranks on each node.
        node: The rank's.
        local: The rank's number there.
    """
    rank, size = sum(counts[:node]) + local, sum(counts)
    across = [index for index, count in enumerate(counts) if count > local]
    return {
        "HOROVOD_HOSTNAME": f"node{node}",
        "HOROVOD_RANK": str(rank),
        "HOROVOD_SIZE": str(size),
        "HOROVOD_LOCAL_RANK": str(local),
        "HOROVOD_LOCAL_SIZE": str(counts[node]),
        "HOROVOD_CROSS_RANK": str(across.index(node)),
        "HOROVOD_CROSS_SIZE": str(len(across)),
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(local),
        "LOCAL_WORLD_SIZE": str(counts[node]),
        "FRAMESIFT_RANK": str(rank),
        "FRAMESIFT_RANKS": str(size),
        "FRAMESIFT_LOCAL_RANK": str(local),
        "FRAMESIFT_LOCAL_RANKS": str(counts[node]),
        "FRAMESIFT_NODE": str(node),
        "FRAMESIFT_NODES": str(len(counts)),
    }


def _serve(counts: Sequence[int], path: Path, launched_at: str) -> None:
    """Serve the ranks' rendezvous in a thread of this process, and say where."""
    address = launched_at if len(counts) > 1 else _LOOPBACK
    address = address or socket.gethostbyname(socket.gethostname())
    rendezvous: dict[str, Any] = {"address": address, "port": 0}
    if find_spec("horovod") is not None:
        from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
        from horovod.runner.http import http_server

        if len(counts) == 1:
            from training.local_ranks import _find_port

            http_server.find_port = _find_port
        hosts = ",".join(f"node{node}:{count}" for node, count in enumerate(counts))
        server = http_server.RendezvousServer()
        rendezvous["port"] = server.start()
        server.init(get_host_assignments(parse_hosts(hosts), sum(counts)))
    with socket.socket() as free:
        free.bind((address, 0))
        rendezvous["master_port"] = free.getsockname()[1]
    atomic_write(path, json.dumps(rendezvous))


def _served(path: Path) -> dict[str, Any]:
    deadline = time.monotonic() + _WAIT_S
    while not path.exists():
        if time.monotonic() > deadline:
            sys.stderr.write(f"error: {path}: the first rank did not say where it is\n")
            sys.exit(1)
        time.sleep(_POLL_S)
    rendezvous: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return rendezvous


def _rendezvous_variables(rendezvous: Mapping[str, Any]) -> dict[str, str]:
    """Variables by which ranks find each other."""
    address = str(rendezvous["address"])
    variables = {"MASTER_ADDR": address, "MASTER_PORT": str(rendezvous["master_port"])}
    variables["FRAMESIFT_FIRST_HOST"] = address
    interface = _interface_to(address)
    if interface and "GLOO_SOCKET_IFNAME" not in os.environ:
        # PyTorch's gloo asks for the host's name, which may be one of loopback.
        variables["GLOO_SOCKET_IFNAME"] = interface
    if rendezvous["port"]:
        variables |= {
            "HOROVOD_GLOO_RENDEZVOUS_ADDR": address,
            "HOROVOD_GLOO_RENDEZVOUS_PORT": str(rendezvous["port"]),
            "HOROVOD_CONTROLLER": "gloo",
            "HOROVOD_CPU_OPERATIONS": "gloo",
        }
        if interface:
            variables["HOROVOD_GLOO_IFACE"] = interface
    return variables


def _interface_to(address: str) -> str:
    """The network interface from which this machine reaches an address; empty where unknown."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((address, 9))
        own = probe.getsockname()[0]
        for _, name in socket.if_nameindex():
            with suppress(OSError):  # it has no address
                packed = fcntl.ioctl(probe, _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
                if socket.inet_ntoa(packed[20:24]) == own:
                    return name
    return ""


def _run(
    program: Sequence[str], environments: Sequence[Mapping[str, str]], stop: Path | None
) -> int:
    """Run the ranks of this task to their end; the first exit code that is not 0, else 0.

    Args:
        program: Each rank's.
        environments: Variables of each.
        stop: A file that asks them to end once it is there.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith(_OWN)}
    started = [subprocess.Popen(program, env={**own, **variables}) for variables in environments]

    def pass_on(number: int, _frame: object) -> None:
        for rank in started:
            if rank.poll() is None:
                rank.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, pass_on)
    waiting = set(started)
    failed = 0
    while waiting:
        for rank in list(waiting):
            code = rank.poll()
            if code is None:
                continue
            waiting.remove(rank)
            if code and not failed:
                failed = code if code > 0 else 128 - code
                pass_on(signal.SIGTERM, None)
        if stop is not None and stop.exists():
            pass_on(signal.SIGTERM, None)
            stop = None
        time.sleep(_POLL_S)
    return failed


def main(notes: Path, ranks: int, per_task: str, program: Sequence[str]) -> int:
    """Run this task's ranks; 0 where all of them succeeded."""
    own = step_variables(os.environ)
    numbers = [int(number) for number in per_task.removeprefix(_LAUNCHER).split(",")]
    counts = numbers if len(numbers) > 1 else ranks_on_nodes(ranks, numbers[0], own)
    if sum(counts) != ranks:
        sys.stderr.write(f"error: the scheduler started {sum(counts)} of {ranks} ranks\n")
        return 1
    step = "-".join(own.get(of, "0") for of in ("JOB_ID", "RESTART_COUNT", "STEP_ID"))
    path = notes / f"ranks-{step}.json"
    node, is_first = int(own["NODEID"]), own["PROCID"] == "0"
    if is_first:
        _serve(counts, path, own.get("LAUNCH_NODE_IPADDR", ""))
    meeting = _rendezvous_variables(_served(path))
    is_task_rank, is_launcher = per_task == "0", per_task.startswith(_LAUNCHER)
    of_node = [int(own["LOCALID"])] if is_task_rank else range(1 if is_launcher else counts[node])
    variables = [{**rank_variables(counts, node, local), **meeting} for local in of_node]
    code = _run(program, variables, Path(own["STOP"]) if "STOP" in own else None)
    ended = path.with_suffix(f".{own['PROCID']}")
    ended.touch()
    # Ranks take leave of the rendezvous, which ends with its process.
    deadline = time.monotonic() + _WAIT_S
    tasks = int(own["STEP_NUM_TASKS"])
    while is_first and not code and time.monotonic() < deadline:
        if all(path.with_suffix(f".{task}").exists() for task in range(tasks)):
            break
        time.sleep(_POLL_S)
    return code


if __name__ == "__main__":
    notes_folder, number, of_task, *words = sys.argv[1:]
    sys.exit(main(Path(notes_folder), int(number), of_task, words))
