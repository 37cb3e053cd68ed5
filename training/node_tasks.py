"""Starts a task on each node of a batch job whose scheduler has no srun, and ends all with one.

    python -P -m training.node_tasks STARTER NOTES RANKS PER_NODE PROGRAM...

STARTER is what starts a command on a host of the job: LSF's blaunch, or PBS's pbs_tmrsh. PROGRAM is
training.slurm_ranks, in a container or not; it learns its place by FRAMESIFT_STEP_ variables.

A task is a script in the folder NOTES, which only its user may read, with the number of its node:
one starter hands words to a shell and the other does not, so these two words are all that they get.
TM starts commands with the environment of the job, not of its script, and has their output go where
the job's goes; so the script sets the environment of this process and writes into its log. It is
asked to end by a file in NOTES, too, as not every starter passes signals on.

Source: the manuals of blaunch (LSB_MCPU_HOSTS) and pbs_tmrsh, qsub (PBS_NODEFILE).
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_POLL_S = 0.1
_OF_HOSTS = ("HOSTNAME", "PWD", "OLDPWD", "SHLVL", "_")
"""Variables that belong to one host or shell."""
_PLAIN = re.compile(r"[\w./+-]+")


def hosts_of(starter: str, environment: Mapping[str, str]) -> list[str]:
    """Hosts of this job, each once, in the scheduler's order.

    Args:
        starter: blaunch or pbs_tmrsh.
        environment: Of a process of the job.

    Raises:
        ValueError: The scheduler does not say them.
    """
    if starter == "blaunch":
        words = environment.get("LSB_MCPU_HOSTS", "").split()
        if not words or len(words) % 2:
            raise ValueError(f"LSB_MCPU_HOSTS {' '.join(words)!r}: expected HOST SLOTS ...")
        return list(dict.fromkeys(words[::2]))
    file = environment.get("PBS_NODEFILE", "")
    if not file:
        raise ValueError("PBS_NODEFILE: is not set; expected a file with a host a line")
    return list(dict.fromkeys(Path(file).read_text(encoding="utf-8").split()))


def place(node: int, nodes: int, step: str, stop: Path) -> dict[str, str]:
    """Variables that tell the task of a node its place (training.slurm_ranks)."""
    variables = {
        "JOB_ID": step,
        "STEP_NUM_TASKS": nodes,
        "STEP_NUM_NODES": nodes,
        "NODEID": node,
        "PROCID": node,
        "LOCALID": 0,
        "STOP": stop,
    }
    return {f"FRAMESIFT_STEP_{name}": str(value) for name, value in variables.items()}


def task_script(
    environment: Mapping[str, str],
    places: Sequence[Mapping[str, str]],
    log: Path | None,
    program: Sequence[str],
) -> str:
    """A script of sh that runs a program on the node whose number is its argument.

    Args:
        environment: Variables of the program.
        places: Further ones of each node.
        log: A file that gets what the program writes; None for what the script has.
        program: Program and arguments.
    """
    lines = [
        f"export {name}={shlex.quote(value)}"
        for name, value in environment.items()
        if name.isidentifier() and name not in _OF_HOSTS
    ]
    for node, variables in enumerate(places):
        of_node = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
        lines.append(f'[ "$1" != {node} ] || export {of_node}')
    if log is not None:
        lines.append(f"exec </dev/null >>{shlex.quote(str(log))} 2>&1")
    folder = shlex.quote(str(Path.cwd()))
    return "\n".join([*lines, f"cd {folder} || exit 1", f"exec {shlex.join(program)}", ""])


def _log() -> Path | None:
    """The file that this process writes to; None where it is no file."""
    log = Path("/proc/self/fd/1").resolve()
    return log if log.is_file() else None


def main(starter: str, notes: Path, ranks: int, per_node: int, program: Sequence[str]) -> int:
    """Run the ranks; 0 where all of them succeeded."""
    nodes = -(-ranks // per_node)
    try:
        hosts = hosts_of(starter, os.environ)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    if len(hosts) < nodes:
        names = ", ".join(hosts)
        sys.stderr.write(f"error: the scheduler gave {len(hosts)} hosts ({names}) of {nodes}\n")
        return 1
    step = f"{os.getpid()}-{time.time_ns()}"
    file, stop = notes / f"task-{step}.sh", notes / f"stop-{step}"
    if not _PLAIN.fullmatch(str(file)):
        sys.stderr.write(
            f"error: {file}: {starter} may hand this path to a shell; a home whose path has "
            "letters, digits, '.', '_', '-', '+' and '/' alone runs there\n"
        )
        return 1
    places = [place(node, nodes, step, stop) for node in range(nodes)]
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as written:
        written.write(task_script(os.environ, places, _log(), program))
        written.flush()
        os.fsync(written.fileno())
    tasks = [
        subprocess.Popen([starter, host, "/bin/sh", str(file), str(node)])
        for node, host in enumerate(hosts[:nodes])
    ]

    def end(_number: int, _frame: object) -> None:
        stop.touch()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    failed = 0
    waiting = set(tasks)
    while waiting:
        for task in list(waiting):
            code = task.poll()
            if code is None:
                continue
            waiting.remove(task)
            if code and not failed:
                failed = code if code > 0 else 128 - code
                stop.touch()
        time.sleep(_POLL_S)
    file.unlink(missing_ok=True)
    return failed


if __name__ == "__main__":
    of_hosts, folder, number_of_ranks, number_per_node, *words = sys.argv[1:]
    sys.exit(main(of_hosts, Path(folder), int(number_of_ranks), int(number_per_node), words))
