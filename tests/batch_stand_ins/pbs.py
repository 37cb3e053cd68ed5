"""OpenPBS 20, as far as a program that submits, asks and ends jobs sees it.

Sources: qsub(1B), qstat(1B), qselect(1B), qdel(1B), qrls(1B), qhold(1B), qrerun(1B), qsig(1B),
pbsdsh(1B), pbs_job_attributes(7B); the sources of these programs and of pbs_tmrsh;
resmom/start_exec.c (the environment, the umask 077, the home as folder, the script's name on the
shell's standard input), resmom/linux/mom_mach.c and catch_child.c (signals go to the processes of a
task's session; with the top shell all ends by SIGKILL); an output of qstat -f -F json of 20.0.1.
Chosen here, because nothing says it: how soon a lost host's job is requeued, and what qstat says of
one that nobody runs for want of room.
"""

import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.batch_stand_ins.engine import (
    ENDED,
    RUNNING,
    WAITING,
    Engine,
    Job,
    Task,
    output,
    picked,
    sessions,
    signal_number,
    spool,
    with_variable,
)
from tests.batch_stand_ins.pbs_words import (
    CODES,
    USAGE,
    Asked,
    Qsub,
    Refused,
    array_range,
    depend,
    directives,
    options,
    qsub_words,
    resources,
    variables,
)
from tests.batch_stand_ins.server import Request

_REQUEUE_S = 0.5
_MOST_RUNS = 20
_WALLTIME = -29  # JOB_EXEC_KILL_WALLTIME
_LOST = -20  # JOB_EXEC_RERUN_MS_FAIL
_FAILED = "job held, too many failed attempts to run"
_TERM, _KILL = int(signal.SIGTERM), int(signal.SIGKILL)


class Pbs:
    """The server's programs."""

    def __init__(self, engine: Engine, folder: Path, settings: dict[str, Any]) -> None:
        """On an empty queue."""
        self.engine, self.folder, self.settings = engine, folder, settings
        engine.front = self
        self.user: str = settings["user"]
        self.server: str = settings["server"]
        self.here = socket.gethostname()
        self.forgotten: set[int] = set()
        self.refusal = ""
        self.programs: dict[str, Callable[[Request], None]] = {
            "qsub": self._qsub, "qstat": self._qstat, "qselect": self._qselect, "qdel": self._qdel,
            "qrls": self._qrls, "qhold": self._qhold, "qrerun": self._qrerun, "qsig": self._qsig,
            "pbs_tmrsh": self._tmrsh, "pbsdsh": self._dsh,
        }  # fmt: skip

    # What the server asks.

    def run(self, request: Request) -> None:
        """Answer a program."""
        if request.words == ["--version"]:
            request.answer("pbs_version = 20.0.1\n")
            return
        try:
            self.programs[request.program](request)
        except Refused as error:
            text = str(error)
            said = text if text.startswith("usage") else f"{request.program}: {text}\n"
            usage = USAGE if request.program == "qsub" and error.code == 2 else ""
            request.answer(err=said + (usage if said != usage else ""), code=error.code)

    def refuse(self, request: Request) -> None:
        """Commands end at once."""
        said = f"{request.program}: cannot connect to server {self.server} (errno=111)\n"
        request.answer(err=f"Connection refused\n{said}", code=111)

    def control(self, what: str, value: Any) -> Any:
        """What tests ask of it."""
        if what == "lose":
            word = value if "[" in value or not self._is_array(value) else f"{value}[]"
            for task in self._tasks_of(word):
                self._lose(task)
        elif what == "forget":
            for job in self.engine.jobs.values():
                if self._is_over(job):
                    self.forgotten.add(job.number)
        elif what == "refuse":
            self.refusal = value
        return [
            {
                "job": task.job.number, "index": task.index, "state": self.state(task),
                "runs": task.runs, "hosts": task.hosts, "name": task.job.name, "gpus": task.gpus,
            }
            for task in self.engine.tasks()
        ] if what == "tasks" else None  # fmt: skip

    def _is_array(self, word: str) -> bool:
        job = self.engine.jobs.get(int(word)) if word.isdigit() else None
        return bool(job and job.is_array)

    def kill_all(self) -> None:
        """End all processes that any job began."""
        for _ in range(3):
            pids = with_variable("PBS_NODEFILE", f"{self.folder}/aux/")
            if not pids:
                return
            for pid in pids:
                with suppress(OSError):
                    os.kill(pid, _KILL)
            time.sleep(0.02)

    # What the engine asks.

    def pids(self, task: Task) -> list[int]:
        """The processes of its sessions; what moved to one of its own is not seen."""
        tops = [step.process.pid for step in task.steps]
        return sessions([*tops, task.process.pid] if task.process else tops)

    def fits(self, task: Task) -> bool:
        """Dependencies, the array's limit, then hosts."""
        job = task.job
        if job.asked["depend"]:
            holds, which = self._holds(job)
            if holds is None:
                for other in job.tasks:
                    self._remove(other, f"Job deleted as result of dependency on job {which}")
                return False
            if not holds:
                return False
            job.asked["depend"] = []
        if sum(other.state == RUNNING for other in job.tasks) >= job.at_once:
            task.waits = "Not Running: Number of concurrent running subjobs limit reached"
            return False
        if not self._place(task):
            return False
        if task.runs + job.asked["run_count"] >= _MOST_RUNS:
            task.hold, task.waits, task.slots = "s", _FAILED, []
            task.runs += 1
            return False
        return True

    def _place(self, task: Task) -> bool:
        asked: Asked = task.job.asked["asked"]
        free = {
            host.name: self.engine.free_slots(host) for host in self.engine.hosts.values()
            if not asked.alone or self.engine.free_slots(host) == host.slots
        }  # fmt: skip
        gpus = {name: self.engine.free_gpus(self.engine.hosts[name], alone=True) for name in free}
        chosen: list[str] = []
        names = list(free)
        if asked.arrangement == "pack":
            need = sum(chunk.cpus for chunk in asked.chunks)
            devices = sum(chunk.gpus for chunk in asked.chunks)
            names = [n for n in names if free[n] >= need and len(gpus[n]) >= devices][:1]
        taken: dict[str, list[int]] = {}
        for chunk in asked.chunks:
            place = next(
                (
                    name for name in names
                    if free[name] >= chunk.cpus and len(gpus[name]) >= chunk.gpus
                    and chunk.host in ("", name)
                    and not (asked.arrangement == "scatter" and name in chosen)
                ),
                None,
            )  # fmt: skip
            if place is None:
                total = sum(host.slots for host in self.engine.hosts.values())
                need = sum(chunk.cpus for chunk in asked.chunks)
                have = sum(self.engine.free_slots(host) for host in self.engine.hosts.values())
                task.waits = (
                    "Not Running: Insufficient amount of resource: ncpus "
                    f"(R: {need} A: {have} T: {total})"
                )
                return False
            chosen.append(place)
            free[place] -= chunk.cpus
            taken.setdefault(place, []).extend(gpus[place][: chunk.gpus])
            gpus[place] = gpus[place][chunk.gpus :]
        task.slots = [
            name for name, chunk in zip(chosen, asked.chunks, strict=True)
            for _ in range(max(chunk.cpus, 1))
        ]  # fmt: skip
        task.notes["places"] = chosen
        task.gpus = {name: sorted(numbers) for name, numbers in taken.items() if numbers}
        task.keeps_gpus = True
        for name in task.hosts:
            self.engine.hosts[name].is_exclusive = asked.alone
        return True

    def program(self, task: Task) -> tuple[list[str], dict[str, Any]]:
        """The user's shell, which reads the script's name; its environment, and where it prints."""
        job, label = task.job, self.label(task)
        asked: Asked = job.asked["asked"]
        places: list[str] = task.notes["places"]
        aux = self.folder / "aux"
        aux.mkdir(exist_ok=True)
        nodes = aux / label
        nodes.write_text(
            "".join(
                f"{name}\n" * chunk.ranks for name, chunk in zip(places, asked.chunks, strict=True)
            )
        )
        own = pwd.getpwnam(self.user)
        shell = job.asked["options"].get("S", own.pw_shell or "/bin/sh")
        task.variables = {
            "PATH": f"{self.folder}/bin:/usr/local/bin:/usr/bin:/bin",
            "PBS_CONF_FILE": str(self.folder / "pbs.conf"),
            **job.environment,
            "HOME": own.pw_dir, "LOGNAME": own.pw_name, "USER": own.pw_name, "SHELL": shell,
            "PBS_JOBNAME": job.name, "PBS_JOBID": label, "PBS_QUEUE": job.asked["queue"],
            "PBS_JOBCOOKIE": f"{job.number:08X}{task.index:04X}{task.runs:04X}", "PBS_NODENUM": "0",
            "PBS_TASKNUM": "1", "PBS_MOMPORT": "15003", "NCPUS": str(asked.chunks[0].cpus),
            "OMP_NUM_THREADS": str(asked.chunks[0].cpus), "PBS_NODEFILE": str(nodes),
            "PBS_JOBDIR": own.pw_dir, "TMPDIR": "/var/tmp", "PBS_ENVIRONMENT": "PBS_BATCH",
            "ENVIRONMENT": "BATCH",
        }  # fmt: skip
        if "A" in job.asked["options"]:
            task.variables["PBS_ACCOUNT"] = job.asked["options"]["A"]
        if job.is_array:
            task.variables["PBS_ARRAY_INDEX"] = str(task.index)
            task.variables["PBS_ARRAY_ID"] = f"{job.number}[].{self.server}"
        if task.gpus:  # as the hook pbs_cgroups does
            devices = task.gpus[task.hosts[0]]
            task.variables["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, devices))
        for stream in self._streams(task, "wb"):
            if stream:
                stream.close()
        out, err = self._streams(task, "ab")  # as its tasks on other hosts open them
        arguments = list(job.command) or [f"-{Path(shell).name}"]
        given: dict[str, Any] = {
            "env": task.variables, "cwd": own.pw_dir, "stdout": out, "stderr": err or out,
            "umask": 0o077,
        }  # fmt: skip
        if job.command:
            return arguments, {**given, "stdin": subprocess.DEVNULL}
        name = re.sub(r"([\[\] ])", r"\\\1", str(job.script))
        reads, writes = os.pipe()
        os.write(writes, f"{name}\n".encode())
        os.close(writes)
        # The login shell's profile of a site sets PATH; this one has none of its own.
        return [Path(shell).name], {**given, "executable": shell, "stdin": os.fdopen(reads, "rb")}

    def started(self, task: Task) -> None:
        """Nothing more."""

    def _streams(self, task: Task, mode: str) -> tuple[Any, Any]:
        """Standard output and error; None for the latter where they are joined."""
        files = []
        keep, join = (task.job.asked["options"].get(key, "n") for key in "kj")
        for letter, path in zip("oe", self._paths(task), strict=True):
            if join in ("n", f"{letter}{'eo'['oe'.index(letter)]}"):
                is_direct = {"d", letter} <= set(keep)
                self._spooled(task, letter).parent.mkdir(exist_ok=True)
                files.append(output(path if is_direct else str(self._spooled(task, letter)), mode))
        return files[0], files[1] if len(files) > 1 else None

    def _spooled(self, task: Task, letter: str) -> Path:
        return self.folder / "spool" / f"{self.label(task)}.{'OU' if letter == 'o' else 'ER'}"

    def _paths(self, task: Task) -> tuple[str, str]:
        """Where output and error are to be at the end."""
        job = task.job
        found = []
        for letter, suffix in (("o", "OU"), ("e", "ER")):
            given = job.asked["options"].get(letter, "").rpartition(":")[2]
            end = f".{task.index}" if job.is_array else ""
            name = f"{job.name}.{letter}{job.number}{end}"
            path = Path(job.folder, given or name)
            keep = job.asked["options"].get("k", "n")
            if letter in keep and "d" not in keep:  # it stays in the home
                path = Path(pwd.getpwnam(self.user).pw_dir, name)
            path = Path(str(path).replace("^array_index^", str(task.index)))
            found.append(str(path / f"{self.label(task)}.{suffix}" if path.is_dir() else path))
        return found[0], found[1]

    def _stage_out(self, task: Task) -> None:
        for letter, path in zip("oe", self._paths(task), strict=True):
            spooled = self._spooled(task, letter)
            if spooled.exists():
                if path == os.devnull:
                    spooled.unlink()
                else:
                    with suppress(OSError):  # undelivered, as on a real one
                        shutil.move(spooled, path)

    def at_limit(self, task: Task) -> None:
        """SIGTERM, then SIGKILL."""
        limit = task.job.asked["asked"].walltime_s
        task.reason = "walltime"
        out, err = self._streams(task, "ab")
        with err or out as stream:
            said = f"=>> PBS: job killed: walltime {limit + 5} exceeded limit {limit}\n"
            stream.write(said.encode())
        out.close()
        self._terminate(task)

    def _terminate(self, task: Task) -> None:
        self.engine.signal(task, _TERM)
        wait = self.settings["kill_delay_s"]
        self.engine.later(task, wait, lambda: self.engine.signal(task, _KILL))

    def ended(self, task: Task) -> None:
        """The top shell ended; all else of it does."""
        if task.process is not None and not task.reason.startswith("never"):
            for _ in range(2):
                self.engine.signal(task, _KILL)
        if task.goes_back:
            self.engine.requeue(task)
            return
        if task.runs and task.started:
            self._stage_out(task)
        self._tell(task.job)

    def _tell(self, job: Job) -> None:
        if self._is_over(job):
            when = time.time() + self.settings["history_s"]
            self.engine.at(when, lambda: self.forgotten.add(job.number))
            if not self.settings["job_history"]:
                self.forgotten.add(job.number)

    @staticmethod
    def _is_over(job: Job) -> bool:
        return all(task.state == ENDED for task in job.tasks)

    def _remove(self, task: Task, words: str) -> None:
        """End what has not begun."""
        task.reason, task.waits = "never", words
        self.engine.end(task, None)

    def _lose(self, task: Task) -> None:
        if task.state != RUNNING or task.is_unreachable:
            return
        task.is_unreachable = True
        pids = with_variable("PBS_JOBCOOKIE", task.variables["PBS_JOBCOOKIE"] + "\0")
        for pid in {*pids, *self.pids(task)}:
            with suppress(OSError):
                os.kill(pid, _KILL)

        def back() -> None:
            if task.process:
                task.process.wait()
            task.goes_back = task.job.asked["rerunable"]
            task.reason = "lost"
            self.engine.end(task, -_KILL)

        self.engine.later(task, _REQUEUE_S, back)

    # Dependencies.

    def _holds(self, job: Job) -> tuple[bool | None, str]:
        """True, False for not yet, None for never; and the job that it fails with."""
        result = True
        for kind, word in job.asked["depend"]:
            parent = self._job_of(word)
            state = None if parent is None else self._allows(kind, parent)
            if state is None:
                return None, self._full(word)
            result = result and state
        return result, ""

    def _allows(self, kind: str, parent: Job) -> bool | None:
        if kind == "after":
            return any(task.runs for task in parent.tasks)
        if not self._is_over(parent):
            return False
        if not any(task.started for task in parent.tasks):
            return None
        code = self._array_code(parent)
        if kind == "afterok":
            return True if code == 0 else None
        return None if kind == "afternotok" and code == 0 else True

    # What a job is called, and how it stands.

    def label(self, task: Task) -> str:
        """12.pbs, or 12[3].pbs."""
        index = f"[{task.index}]" if task.job.is_array else ""
        return f"{task.job.number}{index}.{self.server}"

    def _full(self, word: str) -> str:
        return word if "." in word else f"{word}.{self.server}"

    def state(self, task: Task) -> str:
        """PBS's letter."""
        if task.state == WAITING:
            return "H" if self._holds_of(task) else "Q"
        if task.state == RUNNING:
            return "S" if task.is_stopped else "R"
        return "X" if task.job.is_array and not self._is_over(task.job) else "F"

    @staticmethod
    def _holds_of(task: Task) -> str:
        return task.hold + ("s" if task.job.asked["depend"] and "s" not in task.hold else "")

    def array_state(self, job: Job) -> str:
        """Of the array itself."""
        if self._is_over(job):
            return "F"
        if any(task.runs for task in job.tasks):
            return "B"
        return "H" if self._holds_of(job.tasks[0]) else "Q"

    @staticmethod
    def exit_status(task: Task) -> int | None:
        """As qstat has it; None for one that never began."""
        if task.code is None:
            return None
        if task.reason == "walltime":
            return _WALLTIME
        if task.reason == "lost":
            return _LOST
        return 256 - task.code if task.code < 0 else task.code

    def _array_code(self, job: Job) -> int:
        codes = [self.exit_status(task) for task in job.tasks]
        if not job.is_array:
            return codes[0] or 0
        return 1 if any(codes) else 0

    def _job_of(self, word: str, is_known: bool = True) -> Job | None:
        match = re.fullmatch(r"(\d+)(\[\])?(?:\.([\w-]+)[\w.-]*)?", word)
        job = self.engine.jobs.get(int(match[1])) if match else None
        if match is None or job is None or match[3] not in (None, self.server):
            return None
        if job.is_array != bool(match[2]) or (is_known and job.number in self.forgotten):
            return None
        return job

    def _tasks_of(self, word: str) -> list[Task]:
        job = self._job_of(word)
        if job is not None:
            return list(job.tasks)
        match = re.fullmatch(r"(\d+)\[(\d+)(?:-(\d+))?\](?:\.([\w-]+)[\w.-]*)?", word)
        job = self.engine.jobs.get(int(match[1])) if match else None
        if match is None or job is None or job.number in self.forgotten:
            return []
        wanted = range(int(match[2]), int(match[3] or match[2]) + 1)
        return [task for task in job.tasks if job.is_array and task.index in wanted]

    # qsub.

    def _qsub(self, request: Request) -> None:
        said = Qsub()
        qsub_words(request.words, said)
        if said.command:
            script, name = "", Path(said.command[0]).name
        elif said.script is not None:
            path = Path(request.folder, said.script)
            if not path.is_file():
                raise Refused(f"script file {said.script} cannot be loaded - No such file", 1)
            script, name = path.read_text(errors="surrogateescape"), path.name
        else:
            script, name = request.stdin(), "STDIN"
        lines = Qsub()
        qsub_words(directives(script), lines)
        given = said.options, said.lists, said.attributes
        said.options, said.lists, said.attributes = (
            {**lines.options, **given[0]}, list(given[1]), {**lines.attributes, **given[2]}
        )  # fmt: skip
        named = {part.split("=")[0] for part in said.lists}
        said.lists += [part for part in lines.lists if part.split("=")[0] not in named]
        self._may(request, said)
        job = self._new(request, said, script, said.options.get("N", name))
        self.engine.add(job)
        for task in job.tasks:
            task.hold = "u" if "h" in said.options else ""
        index = "[]" if job.is_array else ""
        printed = "" if "z" in said.options else f"{job.number}{index}.{self.server}\n"
        request.answer(printed)

    def _may(self, request: Request, said: Qsub) -> None:
        if request.uid == 0 and not self.settings["root_jobs"]:
            raise Refused("Bad UID for job execution")
        queue = said.options.get("q", self.settings["queues"][0])
        if queue.partition("@")[0] not in self.settings["queues"]:
            raise Refused("Unknown queue")
        account = said.options.get("A", "")
        if self.settings["accounts"] and account not in self.settings["accounts"]:
            raise Refused(f"hook error: account '{account}' may not submit")
        if self.refusal:
            raise Refused(self.refusal, 1)

    def _new(self, request: Request, said: Qsub, script: str, name: str) -> Job:
        asked = resources(said.lists, list(self.engine.hosts))
        span = (
            array_range(said.options["J"], self.settings["max_array_size"])
            if "J" in said.options else None
        )  # fmt: skip
        if span and said.options.get("r") == "n":
            raise Refused(" cannot submit non-rerunable Array Job", 2)
        at_once = int(said.attributes.get("max_run_subjobs", 0)) or (span.at_once if span else 0)
        if "max_run_subjobs" in said.attributes and not span:
            raise Refused("Illegal attribute or resource value: max_run_subjobs")
        given = depend(said.attributes["depend"]) if "depend" in said.attributes else []
        listed = self._variables(request, said)
        self.engine.number += 1
        number = self.engine.number
        path = self.folder / "jobs" / f"{number}.{self.server}.SC"
        if not said.command:
            spool(path.parent, path.name, script)
        limit = asked.walltime_s
        scale = self.settings["minute_s"] / 60
        job = Job(
            number, name, span is not None, path, tuple(said.command), listed, request.folder,
            at_once or max(len(span.indices) if span else 1, 1),
            None if limit is None else limit * scale,
            {
                "options": said.options, "asked": asked, "depend": given,
                "depend said": said.attributes.get("depend", ""), "range": span,
                "queue": said.options.get("q", self.settings["queues"][0]).partition("@")[0],
                "rerunable": said.options.get("r", "y") == "y",
                "run_count": int(said.attributes.get("run_count", 0)),
                "words": " ".join(request.words),
            },
        )  # fmt: skip
        job.tasks = [Task(job, index) for index in (span.indices if span else (0,))]
        return job

    def _variables(self, request: Request, said: Qsub) -> dict[str, str]:
        own = request.environment
        kept = dict(own) if "V" in said.options else {}
        kept = {key: value for key, value in kept.items() if not key.startswith("PBS_")}
        if "v" in said.options:
            kept.update(variables(said.options["v"], own))
        names = ("HOME", "LANG", "LOGNAME", "MAIL", "PATH", "SHELL", "TZ")
        passed = {f"PBS_O_{name}": value for name, value in picked(own, names).items()}
        return {
            **kept, **passed, "PBS_O_WORKDIR": request.folder, "PBS_O_SYSTEM": os.uname().sysname,
            "PBS_O_QUEUE": said.options.get("q", self.settings["queues"][0]),
            "PBS_O_HOST": self.here,
        }  # fmt: skip

    # qstat.

    def _qstat(self, request: Request) -> None:
        found, words = options(request.words, "F:uD", "aBfGHiJMnpQqrstTxEw1")
        given = dict(found)
        if given.keys() - set("fFxtJwE") or given.get("F", "json") not in ("json",):
            raise Refused("illegal option", 2)
        if "F" in given and "f" not in given:
            raise Refused("-F: goes with -f only", 2)
        errors, codes = [], []
        records: dict[str, dict[str, Any]] = {}
        for word in words or [self._word(job) for job in self.engine.jobs.values()]:
            problem = self._illegal(word)
            records_of = {} if problem else self._records(word, "t" in given)
            if problem:
                errors.append(f"qstat: {problem}\n")
                codes.append(1)
            elif not records_of:
                if words:
                    errors.append(f"qstat: Unknown Job Id {self._full(word)}\n")
                    codes.append(CODES["Unknown Job Id"])
            elif "x" not in given and next(iter(records_of.values()))["job_state"] == "F":
                if words:
                    errors.append(
                        f"qstat: {self._full(word)} Job has finished, use -x or -H to obtain "
                        "historical job information\n"
                    )
                    codes.append(CODES["Job has finished"])
            else:
                records.update(records_of)
        text = self._json(records) if "f" in given else _table(records)
        request.answer(text, "".join(errors), codes[-1] if codes else 0)

    def _word(self, job: Job) -> str:
        return f"{job.number}[].{self.server}" if job.is_array else f"{job.number}.{self.server}"

    @staticmethod
    def _illegal(word: str) -> str:
        if re.fullmatch(r"\d+(\[(\d+(-\d+)?)?\])?(\.[\w.-]+)?(@[\w.-]+)?", word):
            return ""
        return f"illegally formed job identifier: {word}"

    def _records(self, word: str, with_subjobs: bool) -> dict[str, dict[str, Any]]:
        job = self._job_of(word)
        if job is None or not job.is_array:
            return {self.label(task): self._record(task) for task in self._tasks_of(word)}
        records = {self._word(job): self._array_record(job)}
        if with_subjobs:
            records |= {self.label(task): self._record(task) for task in job.tasks}
        return records

    def _common(self, job: Job) -> dict[str, Any]:
        task = job.tasks[0]
        asked: Asked = job.asked["asked"]
        listed: dict[str, Any] = {
            "ncpus": sum(chunk.cpus for chunk in asked.chunks),
            "ngpus": sum(chunk.gpus for chunk in asked.chunks),
            "mpiprocs": sum(chunk.ranks for chunk in asked.chunks),
            "nodect": len(asked.chunks),
            "place": asked.listed.get("place", "free"),
            "select": asked.listed["select"],
        }  # fmt: skip
        if asked.walltime_s is not None:
            listed["walltime"] = _clock(asked.walltime_s)
        listed = {key: value for key, value in listed.items() if value or key == "ncpus"}
        out, err = self._paths(task)
        record: dict[str, Any] = {
            "Job_Name": job.name, "Job_Owner": f"{self.user}@{self.here}",
            "job_state": "", "queue": job.asked["queue"], "server": self.server,
            "Checkpoint": "u", "ctime": _when(task.submitted), "Error_Path": f"{self.here}:{err}",
            "Hold_Types": "n", "Join_Path": job.asked["options"].get("j", "n"),
            "Keep_Files": job.asked["options"].get("k", "n"), "Mail_Points": "a",
            "mtime": _when(time.time()), "Output_Path": f"{self.here}:{out}", "Priority": 0,
            "qtime": _when(task.queued), "Rerunable": str(job.asked["rerunable"]),
            "Resource_List": listed, "substate": 10, "Variable_List": dict(job.environment),
            "Submit_arguments": job.asked["words"], "project": "_pbs_project_default",
            "Submit_Host": self.here,
        }  # fmt: skip
        if "A" in job.asked["options"]:
            record["Account_Name"] = job.asked["options"]["A"]
        if job.asked["depend said"]:
            record["depend"] = job.asked["depend said"]
        return record

    def _record(self, task: Task) -> dict[str, Any]:
        job, state = task.job, self.state(task)
        record = self._common(job)
        record["job_state"] = state
        record["Hold_Types"] = "".join(sorted(self._holds_of(task), reverse=True)) or "n"
        record["substate"] = self._substate(task, state)
        out, err = self._paths(task)
        record["Output_Path"], record["Error_Path"] = f"{self.here}:{out}", f"{self.here}:{err}"
        if job.is_array:
            record["array_id"], record["array_index"] = self._word(job), task.index
        if task.runs:
            record["run_count"] = task.runs + job.asked["run_count"]
        if task.started:
            places: list[str] = task.notes["places"]
            chunks = job.asked["asked"].chunks
            pairs = list(zip(places, chunks, strict=True))
            vnodes = "+".join(
                f"({name}:ncpus={chunk.cpus}{f':ngpus={chunk.gpus}' if chunk.gpus else ''})"
                for name, chunk in pairs
            )
            record["exec_host"] = "+".join(
                f"{name}/0" + (f"*{chunk.cpus}" if chunk.cpus > 1 else "") for name, chunk in pairs
            )
            record["exec_vnode"] = vnodes
            record["stime"] = _when(task.started)
            record["session_id"] = task.process.pid if task.process else 0
            record["jobdir"] = task.variables["HOME"]
            begun = time.strftime("%a %b %d at %H:%M", time.localtime(task.started))
            ended = {91: " and terminated", 92: " and finished", 93: " and failed"}
            suffix = ended.get(record["substate"], "") if state in "FX" else ""
            record["comment"] = f"Job run at {begun} on {vnodes}{suffix}"
            used = (task.finished or time.time()) - task.started
            record["resources_used"] = {
                "cpupercent": 0, "cput": "00:00:00", "mem": "0kb",
                "ncpus": sum(chunk.cpus for chunk in chunks), "vmem": "0kb",
                "walltime": _clock(int(used)),
            }  # fmt: skip
        elif task.waits:
            record["comment"] = task.waits
        status = self.exit_status(task) if task.state == ENDED else None
        if task.hold == "s" and task.waits == _FAILED:
            status = -3
        if status is not None:
            record["Exit_status"] = status
        return record

    def _substate(self, task: Task, state: str) -> int:
        if state in "FX":
            if task.reason in ("never", "deleted", "walltime"):
                return 91
            return 92 if task.code == 0 else 93
        if state == "H":
            return 22 if task.job.asked["depend"] else 20
        return {"Q": 10, "R": 42, "S": 43}[state]

    def _array_record(self, job: Job) -> dict[str, Any]:
        record = self._common(job)
        state = self.array_state(job)
        record["job_state"] = state
        record["Hold_Types"] = self._holds_of(job.tasks[0]) or "n"
        record["substate"] = {"Q": 10, "H": 20, "B": 70}.get(state, 92)
        counts = {
            "Queued": sum(task.state == WAITING for task in job.tasks),
            "Running": sum(task.state == RUNNING for task in job.tasks),
            "Exiting": 0,
            "Expired": sum(task.state == ENDED for task in job.tasks),
        }
        record["array"] = "True"
        record["array_state_count"] = "".join(f"{key}:{value} " for key, value in counts.items())
        record["array_indices_submitted"] = job.asked["range"].said
        left = [str(task.index) for task in job.tasks if task.state == WAITING]
        record["array_indices_remaining"] = ",".join(left) or "-"
        if state == "F":
            record["Exit_status"] = self._array_code(job)
            record["substate"] = 92 if record["Exit_status"] == 0 else 93
        elif state == "B":
            began = min(task.started for task in job.tasks if task.started)
            when = time.strftime("%a %b %d at %H:%M", time.localtime(began))
            record["comment"] = f"Job Array Began at {when}"
        return record

    def _json(self, records: dict[str, dict[str, Any]]) -> str:
        said: dict[str, Any] = {
            "timestamp": int(time.time()), "pbs_version": "20.0.1", "pbs_server": self.server,
        }  # fmt: skip
        if records:
            said["Jobs"] = records
        return _json(said, 0) + "\n"

    def _qselect(self, request: Request) -> None:
        found, rest = options(request.words, "NqsuA", "xT")
        given = dict(found)
        if rest:
            request.answer(err="usage: qselect [-N name] [-q destination] [-s states] "
                           "[-u user_list] [-A account_string] [-T] [-x]\n", code=2)  # fmt: skip
            return
        states = given.get("s", "BEFHMQRSTUWX" if "x" in given else "BEHQRSTUWX")
        if not re.fullmatch("[BEFHMQRSTUWX]+", states):
            raise Refused("illegal -s value", 2)
        lines = []
        for job in self.engine.jobs.values():
            state = self.array_state(job) if job.is_array else self.state(job.tasks[0])
            fits = (
                job.number not in self.forgotten
                and state in states
                and given.get("N", job.name) == job.name
                and given.get("q", job.asked["queue"]) == job.asked["queue"]
                and self.user in given.get("u", self.user).split(",")
                and given.get("A") in (None, job.asked["options"].get("A"))
            )
            if fits:
                tasks = map(self.label, job.tasks) if "T" in given else [self._word(job)]
                lines += [f"{word}\n" for word in tasks]
        request.answer("".join(lines))

    # qdel, qhold, qrls, qrerun, qsig.

    def _each(
        self, request: Request, words: list[str], usage: str, act: Callable[[Task], str],
        finished: bool = False,
    ) -> None:  # fmt: skip
        """Do something with each job.

        Args:
            act: Says what is wrong, or nothing.
            finished: Whether jobs that have finished are no error.
        """
        if not words:
            request.answer(err=usage, code=2)
            return
        errors, code = [], 0
        for word in words:
            problem = self._illegal(word)
            tasks = self._tasks_of(word)
            if problem:
                code = 1
                errors.append(f"{request.program}: {problem}\n")
                continue
            problems = [self._act(task, act, finished) for task in tasks]
            said = "Unknown Job Id" if not tasks else problems[0] if all(problems) else ""
            if said:
                code = CODES[said] & 0xFF
                errors.append(f"{request.program}: {said} {self._full(word)}\n")
        request.answer("", "".join(errors), code)

    @staticmethod
    def _act(task: Task, act: Callable[[Task], str], finished: bool) -> str:
        return "Job has finished" if task.state == ENDED and not finished else act(task)

    def _qdel(self, request: Request) -> None:
        found, words = options(request.words, "W", "x")
        given = dict(found)
        if "W" in given and not re.fullmatch(r"force|suppress_email=\d+|\d+", given["W"]):
            raise Refused("illegal -W value", 2)

        def act(task: Task) -> str:
            if task.state == WAITING:
                self._remove(task, f"{task.waits or 'Not Running'} and terminated")
            elif task.state == RUNNING:
                task.reason, task.goes_back = task.reason or "deleted", False
                if given.get("W") == "force":
                    self.engine.signal(task, _KILL)
                elif task.notes.get("deleted run") != task.runs:
                    self._terminate(task)
                task.notes["deleted run"] = task.runs
            if "x" in given and self._is_over(task.job):
                self.forgotten.add(task.job.number)
            return ""

        usage = (
            "usage:\n\tqdel [-W force|suppress_email=X] [-x] job_identifier...\n\tqdel --version\n"
        )
        self._each(request, words, usage, act, finished="x" in given)

    def _held(self, request: Request, name: str) -> tuple[str, list[str]]:
        found, words = options(request.words, "h", "")
        kinds = dict(found).get("h", "u")
        if not re.fullmatch(r"[uosp]+|n", kinds):
            raise Refused("illegal -h value", 2)
        return kinds, words

    def _qhold(self, request: Request) -> None:
        kinds, words = self._held(request, "qhold")

        def act(task: Task) -> str:
            if task.state == WAITING:
                task.hold = "".join(sorted({*task.hold, *kinds} - {"n"}, reverse=True))
            return ""

        usage = "usage: qhold [-h hold_list] job_identifier...\n       qhold --version\n"
        self._each(request, words, usage, act)

    def _qrls(self, request: Request) -> None:
        kinds, words = self._held(request, "qrls")

        def act(task: Task) -> str:
            if set(kinds) & set("sop") and not self.settings["operator"]:
                return "Unauthorized Request "
            task.hold = "".join(letter for letter in task.hold if letter not in kinds)
            if not task.hold and task.waits == _FAILED:
                task.waits, task.runs = "", 0
            return ""

        usage = "usage: qrls [-h hold_list] job_identifier...\n       qrls --version\n"
        self._each(request, words, usage, act)

    def _qrerun(self, request: Request) -> None:
        found, words = options(request.words, "W", "")
        usage = "usage: qrerun [-W force] job_identifier...\n       qrerun --version\n"
        if found and dict(found) != {"W": "force"}:
            request.answer(err=usage, code=2)
            return

        def act(task: Task) -> str:
            if not self.settings["operator"]:
                return "Unauthorized Request "
            if not task.job.asked["rerunable"]:
                return "job is not rerunnable"
            if task.state == ENDED and task.job.is_array and not self._is_over(task.job):
                self.engine.requeue(task)
                return ""
            if task.state != RUNNING:
                return "Request invalid for state of job"
            task.goes_back = True
            self.engine.signal(task, _KILL)
            return ""

        self._each(request, words, usage, act, finished=False)

    def _qsig(self, request: Request) -> None:
        found, words = options(request.words, "s", "")
        name = dict(found).get("s", "SIGTERM")
        special = {"suspend": signal.SIGSTOP, "resume": signal.SIGCONT, "SIGNULL": 0}

        def act(task: Task) -> str:
            number = special.get(name, signal_number(name))
            if number is None:
                return "Unknown/illegal signal name"
            if task.state != RUNNING:
                return "Request invalid for state of job"
            if name in ("suspend", "resume"):
                if not self.settings["operator"]:
                    return "Unauthorized Request "
                task.is_stopped = name == "suspend"
            self.engine.signal(task, int(number))
            return ""

        usage = "usage: qsig [-s signal] job_identifier...\n       qsig --version\n"
        self._each(request, words, usage, act)

    # pbs_tmrsh, pbsdsh.

    def _of(self, request: Request) -> Task | None:
        """The job that a program of the task manager runs in."""
        for task in self.engine.tasks():
            cookie = task.variables.get("PBS_JOBCOOKIE")
            if task.state == RUNNING and cookie == request.environment.get("PBS_JOBCOOKIE", ""):
                return task
        return None

    def _nodes(self, task: Task) -> list[str]:
        places: list[str] = task.notes["places"]
        chunks = task.job.asked["asked"].chunks
        return [n for n, chunk in zip(places, chunks, strict=True) for _ in range(chunk.ranks)]

    def _spawn(
        self, task: Task, host: str, node: int, words: list[str], ended: Callable[[int], None]
    ) -> Any:
        """A task of the task manager's: the job's environment, home and outputs."""
        number = task.notes["steps"] = task.notes.get("steps", 1) + 1
        given = {**task.variables, "PBS_NODENUM": str(node), "PBS_TASKNUM": str(number)}
        given.pop("CUDA_VISIBLE_DEVICES", None)
        if task.gpus.get(host):
            given["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, task.gpus[host]))
        out, err = self._streams(task, "ab")
        try:
            return self.engine.step(
                task, host, words, lambda code: ended(256 - code if code < 0 else code),
                env=given, cwd=given["HOME"], stdin=subprocess.DEVNULL, stdout=out,
                stderr=err or out, umask=0o077,
            )  # fmt: skip
        finally:
            out.close()
            if err:
                err.close()

    def _tmrsh(self, request: Request) -> None:
        usage = (
            "usage: pbs_tmrsh [-n][-l username] host [-n][-l username] command\n"
            "       pbs_tmrsh --version\n"
        )
        host, words, said = self._rsh_words(request.words)
        if host is None or not words:
            request.answer(err=said + usage, code=255)
            return
        task, said = self._within(request, "pbs_tmrsh")
        if task is None:
            request.answer(err=said, code=255)
            return
        nodes = self._nodes(task)
        if host not in nodes:
            label = request.environment.get("PBS_JOBID")
            said = f'pbs_tmrsh: host "{host}" is not a node in job <{label}>\n'
            request.answer(err=said, code=255)
            return
        try:
            self._spawn(
                task, host, nodes.index(host), words, lambda code: request.answer(code=code)
            )
        except OSError:
            # The task begins, and its exec fails.
            request.answer(code=254)

    def _rsh_words(self, given: list[str]) -> tuple[str | None, list[str], str]:
        """Host, command, and what is wrong."""
        words, host = list(given), None
        while words:
            if words[0] == "-n":
                words.pop(0)
            elif words[0].startswith("-l"):
                name = words.pop(0)[2:] or (words.pop(0) if words else "")
                if name != self.user:
                    return None, [], f'pbs_tmrsh: bad user "{name}"\n'
            elif words[0].startswith("-"):
                return None, [], ""
            elif host is None:
                host = words.pop(0)
            else:
                break
        return host, words, ""

    def _within(self, request: Request, name: str) -> tuple[Task | None, str]:
        if "PBS_ENVIRONMENT" not in request.environment:
            return None, f"{name}: not executing under PBS\n"
        if "PBS_JOBID" not in request.environment:
            return None, f"{name}: PBS jobid not in environment\n"
        if "PBS_NODEFILE" not in request.environment:
            return None, f"{name}: cannot find PBS_NODEFILE\n"
        task = self._of(request)
        return task, "" if task else f"{name}: tm_init: TM_BADINIT\n"

    def _dsh(self, request: Request) -> None:
        found, words = options(request.words, "cn", "svo")
        given = dict(found)
        words = words[1:] if words[:1] == ["--"] else words
        numbers = [given[key] for key in "cn" if key in given]
        if not words or {"c", "n"} <= given.keys() or not all(map(str.isdigit, numbers)):
            usage = (
                "Usage: pbsdsh [-c copies][-s][-v][-o] -- program [args...]\n"
                "       pbsdsh [-n node_index][-s][-v][-o] -- program [args...]\n"
                "       pbsdsh --version\n"
            )
            request.answer(err=usage, code=1)
            return
        task, said = self._within(request, "pbsdsh")
        if task is None:
            request.answer(err=said, code=1)
            return
        nodes = self._nodes(task)
        every = range(int(given.get("c", len(nodes))))
        wanted = [int(given["n"])] if "n" in given else list(every)
        _Dsh(self, request, task, nodes, wanted, words)


class _Dsh:
    """A pbsdsh that waits for its tasks."""

    def __init__(
        self, pbs: Pbs, request: Request, task: Task, nodes: list[str], wanted: list[int],
        words: list[str],
    ) -> None:  # fmt: skip
        """Start them."""
        self.request, self.left, self.steps = request, len(wanted), list[Any]()
        request.on_signal = self.signal
        for number, node in enumerate(wanted):
            host = nodes[node % len(nodes)]
            ended = self._ender(number)
            try:
                self.steps.append(pbs._spawn(task, host, node % len(nodes), words, ended))
            except OSError:
                ended(254)

    def _ender(self, number: int) -> Callable[[int], None]:
        def ended(code: int) -> None:
            if code:
                self.request.say(f"pbsdsh: task 0x{number:08X} exit status {code}\n")
            self.left -= 1
            if self.left == 0:
                self.request.answer(code=0)

        return ended

    def signal(self, number: int) -> None:
        """Those of HUP, INT and TERM end it, after they went to the tasks."""
        for step in self.steps:
            with suppress(OSError):
                os.killpg(step.process.pid, number)
        self.request.answer(code=1)


def _when(when: float) -> str:
    return time.strftime("%a %b %d %H:%M:%S %Y", time.localtime(when))


def _clock(seconds: int) -> str:
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def _json(value: Any, depth: int) -> str:
    """As qstat prints it: no blank after a colon, texts that look like numbers without quotes."""
    if isinstance(value, dict):
        inner = ",\n".join(
            f"{'    ' * (depth + 1)}{_text(key)}:{_json(each, depth + 1)}"
            for key, each in value.items()
        )
        return "{\n" + inner + "\n" + "    " * depth + "}"
    text = str(value)
    if re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?", text):
        return text
    return _text(text)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _table(records: dict[str, dict[str, Any]]) -> str:
    if not records:
        return ""
    lines = [
        "Job id            Name             User              Time Use S Queue",
        "----------------  ---------------- ----------------  -------- - -----",
    ]
    for label, record in records.items():
        user = record["Job_Owner"].partition("@")[0]
        used = record.get("resources_used", {}).get("cput", "0")
        lines.append(
            f"{label:<17.17s} {record['Job_Name']:<16.16s} {user:<17.17s} {used:>8s} "
            f"{record['job_state']} {record['queue']:<16s}"
        )
    return "".join(f"{line}\n" for line in lines)
