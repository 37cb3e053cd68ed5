"""Start and end a stand-in, and what tests do to it while it runs."""

import getpass
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LSF_PROGRAMS = (
    "bsub", "bjobs", "bkill", "bresume", "bstop", "brequeue", "bhist", "blaunch", "lsid",
)  # fmt: skip
PBS_PROGRAMS = (
    "qsub", "qstat", "qselect", "qdel", "qrls", "qhold", "qrerun", "qsig", "pbs_tmrsh", "pbsdsh",
)  # fmt: skip


class StandIn(dict[str, str]):
    """Variables by which programs find the cluster, and the ways in which it can fail."""

    def __init__(self, folder: Path, variables: dict[str, str]) -> None:
        """One that runs in a folder."""
        super().__init__(variables)
        self.folder = folder

    def lose(self, job: str) -> None:
        """The hosts of a job that runs die: all its processes are gone, its programs' too.

        Args:
            job: Its number, or that of an element of its array: "12", "12[3]".
        """
        self._ask("lose", job)

    def silence(self, how: str = "") -> None:
        """Have the scheduler not answer.

        Args:
            how: "hang": programs wait; "refuse": they say that they cannot connect; empty: what
                waits is answered, and all that comes.
        """
        self._ask("silent", how)

    def forget(self) -> None:
        """Forget all jobs that have ended, as a while after their end."""
        self._ask("forget", None)

    def refuse(self, message: str = "") -> None:
        """Have each submission refused with this message; empty: with none any more."""
        self._ask("refuse", message)

    def tasks(self) -> list[dict[str, Any]]:
        """What the queue knows of each task, as "job", "index", "state", "runs", "hosts"."""
        tasks: list[dict[str, Any]] = self._ask("tasks", None)
        return tasks

    def _ask(self, what: str, value: Any) -> Any:
        head = json.dumps({"program": "control", "what": what, "value": value}).encode()
        with socket.socket(socket.AF_UNIX) as line:
            at = os.open(self.folder, os.O_RDONLY)
            try:
                line.connect(f"/proc/self/fd/{at}/socket")
            finally:
                os.close(at)
            line.sendall(len(head).to_bytes(8, "big") + head)
            return json.loads(line.makefile("rb").readline())


@contextmanager
def lsf_stand_in(
    folder: Path,
    hosts: int | Sequence[str] = 2,
    slots: int = 2,
    *,
    gpus: int = 2,
    minute_s: float = 60.0,
    terminate_interval_s: float = 10.0,
    clean_period_s: float = 3600.0,
    after_limit_s: float = 600.0,
    queues: Sequence[str] = ("normal", "short", "gpu"),
    projects: Sequence[str] = (),
    user_groups: Sequence[str] = (),
    applications: Sequence[str] = (),
    reservations: Sequence[str] = (),
    max_job_array_size: int = 1000,
    root_user: bool = True,
    consistent_exit_code: bool = False,
) -> Iterator[StandIn]:
    """A running LSF for the block.

    Args:
        folder: Of its queue; does not need to exist.
        hosts: How many, then host1, host2..., or their names.
        slots: Of each host.
        gpus: Of each host.
        minute_s: How long a minute of -W takes [s].
        terminate_interval_s: Between SIGINT, SIGTERM and SIGKILL (JOB_TERMINATE_INTERVAL).
        clean_period_s: After which bjobs forgets what has ended (CLEAN_PERIOD).
        after_limit_s: Between SIGUSR2 at the run limit and the kill, "ten minutes".
        queues: The first is the default one.
        projects: Those that may submit, as an esub would have it; empty: all.
        root_user: LSF_ROOT_USER of lsf.conf; off in a real one.
        consistent_exit_code: LSB_BJOBS_CONSISTENT_EXIT_CODE of lsf.conf.
    """
    settings = {
        name: value for name, value in locals().items() if name not in ("folder", "hosts", "slots")
    }
    conf = folder / "conf"
    conf.mkdir(parents=True)
    variables = {
        "LSF_ENVDIR": str(conf), "LSF_BINDIR": str(folder / "bin"),
        "LSF_SERVERDIR": str(folder / "etc"), "LSF_LIBDIR": str(folder / "lib"),
    }  # fmt: skip
    (conf / "lsf.conf").write_text(f"LSF_ROOT_USER={'Y' if root_user else 'N'}\n")
    lines = [f"export {name}='{value}'" for name, value in variables.items()]
    path = f"export PATH='{folder}/bin':\"$PATH\""
    (conf / "profile.lsf").write_text("\n".join([*lines, path, ""]))
    (conf / "socket").symlink_to("../socket")
    missing = "lsf.conf: Cannot open configuration file; is LSF_ENVDIR set (profile.lsf)?"
    with _server(folder, "lsf", hosts, slots, gpus, settings):
        _programs(folder / "bin", LSF_PROGRAMS, "LSF_ENVDIR", missing)
        yield StandIn(folder, {"PATH": f"{folder}/bin:{os.environ['PATH']}", **variables})


@contextmanager
def pbs_stand_in(
    folder: Path,
    hosts: int | Sequence[str] = 2,
    slots: int = 2,
    *,
    gpus: int = 2,
    minute_s: float = 60.0,
    kill_delay_s: float = 10.0,
    history_s: float = 1209600.0,
    job_history: bool = True,
    queues: Sequence[str] = ("workq", "short", "gpu"),
    accounts: Sequence[str] = (),
    max_array_size: int = 10000,
    root_jobs: bool = True,
    operator: bool = True,
    server: str = "pbs",
) -> Iterator[StandIn]:
    """A running OpenPBS for the block.

    Args:
        folder: Of its queue; does not need to exist.
        hosts: How many, then host1, host2..., or their names.
        slots: CPUs (ncpus) of each host.
        gpus: Of each host (ngpus).
        minute_s: How long a minute of walltime takes [s].
        kill_delay_s: Between SIGTERM and SIGKILL (kill_delay of the queue).
        history_s: After which qstat -x forgets what has ended (job_history_duration).
        job_history: job_history_enable; off in a real one that nobody has configured.
        queues: The first is the default one.
        accounts: Those that a hook of the site lets submit; empty: all.
        root_jobs: Whether root may submit (acl_roots); not in a real one.
        operator: Whether the user is one, or a manager, as root is: who is not may not qrerun.
        server: The name after the dot of a job's identifier.
    """
    settings = {
        name: value for name, value in locals().items() if name not in ("folder", "hosts", "slots")
    }
    folder.mkdir(parents=True, exist_ok=True)
    conf = folder / "pbs.conf"
    conf.write_text(f"PBS_SERVER={server}\nPBS_EXEC={folder}\nPBS_HOME={folder}\n")
    missing = "cannot open /etc/pbs.conf; is PBS_CONF_FILE set?"
    with _server(folder, "pbs", hosts, slots, gpus, settings):
        _programs(folder / "bin", PBS_PROGRAMS, "PBS_CONF_FILE", missing)
        path = f"{folder}/bin:{os.environ['PATH']}"
        yield StandIn(folder, {"PATH": path, "PBS_CONF_FILE": str(conf)})


@contextmanager
def _server(
    folder: Path, kind: str, hosts: int | Sequence[str], slots: int, gpus: int,
    settings: dict[str, Any],
) -> Iterator[None]:  # fmt: skip
    names = [f"host{n + 1}" for n in range(hosts)] if isinstance(hosts, int) else list(hosts)
    rows = [{"name": name, "slots": slots, "gpus": gpus} for name in names]
    said = {**settings, "kind": kind, "hosts": rows, "user": getpass.getuser()}
    (folder / "settings.json").write_text(json.dumps(said))
    command = [sys.executable, "-S", "-m", "tests.batch_stand_ins.server", str(folder)]
    root = HERE.parent.parent
    variables = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=root, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=log, start_new_session=True,
        )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        if not process.stdout.readline():
            raise RuntimeError((folder / "server.log").read_text())
        yield
        if process.poll() is not None:
            raise RuntimeError((folder / "server.log").read_text())
    finally:
        process.stdin.close()
        process.wait(30)
        process.stdout.close()


def _programs(folder: Path, names: Sequence[str], place: str, missing: str) -> None:
    text = (HERE / "client.py").read_text()
    text = text.replace('PLACE = ""', f'PLACE = "{place}"', 1)
    text = text.replace('MISSING = ""', f'MISSING = "{missing}"', 1)
    python = Path(sys.executable).resolve()  # not a virtual environment's, which starts more slowly
    folder.mkdir()
    for name in names:
        program = folder / name
        program.write_text(f"#!{python} -SEI\n{text}")
        program.chmod(0o755)
