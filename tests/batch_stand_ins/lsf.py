"""IBM Spectrum LSF 10.1, as far as a program that submits, asks and ends jobs sees it.

Sources: command reference of 10.1 for each program; "Environment variables set for job execution";
"Termination reasons displayed by bacct, bhist and bjobs"; "Send a signal to a job"; bsub -W. The
job file with its traps, and the words of errors: OpenLava's mbatchd and cmd/, LSF 4's source.
Chosen here, because no manual says it: the words after an option that is none, after an unknown
application, reservation or field, of blaunch outside a job or its hosts; root's refusal; that a
lost host comes back after `_BACK_S`.
"""

import os
import pwd
import re
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.batch_stand_ins.engine import (
    ENDED,
    RUNNING,
    WAITING,
    Engine,
    Host,
    Job,
    Step,
    Task,
    output,
    signal_number,
    spool,
    with_variable,
)
from tests.batch_stand_ins.lsf_fields import FIELDS, TITLES, columns, json_text, wrapped
from tests.batch_stand_ins.lsf_words import (
    Condition,
    Refused,
    bsub_lines,
    bsub_words,
    dependency,
    environment,
    gpus,
    job_name,
    leaves,
    memory,
    minutes,
    requirements,
    slots,
)
from tests.batch_stand_ins.server import Request

_BACK_S = 0.5
_USER2 = int(signal.SIGUSR2)
_JOB_FILE = """#! /bin/sh
$LSB_TRAPSIGS
# LSBATCH: User input
{command}
ExitStat=$?
wait
# LSBATCH: End user input
true
exit `expr $? "|" $ExitStat`
"""
OWNER = "TERM_OWNER: job killed by owner"
RUNLIMIT = "TERM_RUNLIMIT: job killed after reaching LSF run time limit"
REQUEUED = "TERM_REQUEUE_OWNER: job killed and requeued by owner"
ORPHAN = "TERM_ORPHAN_SYSTEM: The orphan job was automatically terminated by LSF"
EXTERNAL = "TERM_EXTERNAL_SIGNAL: job killed by a signal external to LSF"
ZOMBIE = "TERM_ZOMBI: job exited while LSF is not available"
_NEW = "New job is waiting for scheduling;"
_AGAIN = "Requeue the job for the next run;"
_DEPENDS = "Job dependency condition not satisfied;"
_NEVER = "Dependency condition invalid or never satisfied;"
_HELD = "Job was suspended by the user while pending;"
_ARRAY = "The job array has reached its job slot limit;"
_SLOTS = "Not enough job slot(s);"
_TOO_FEW = "Job requirements for reserving resource (ngpus_physical) not satisfied;"


class Lsf:
    """The cluster's programs."""

    def __init__(self, engine: Engine, folder: Path, settings: dict[str, Any]) -> None:
        """On an empty queue."""
        self.engine, self.folder, self.settings = engine, folder, settings
        engine.front = self
        self.user: str = settings["user"]
        self.here = socket.gethostname()
        self.forgotten: set[int] = set()
        self.refusal = ""
        self.programs: dict[str, Callable[[Request], None]] = {
            "bsub": self._bsub, "bjobs": self._bjobs, "bhist": self._bhist, "lsid": self._lsid,
            "blaunch": self._blaunch, "bkill": self._bkill, "bstop": self._bstop,
            "bresume": self._bresume, "brequeue": self._brequeue,
        }  # fmt: skip

    # What the server asks.

    def run(self, request: Request) -> None:
        """Answer a program."""
        if request.words[:1] == ["-V"]:
            request.answer(err="IBM Spectrum LSF Standard 10.1.0.14\n")
            return
        if request.uid == 0 and not self.settings["root_user"] and request.program != "lsid":
            words = "User permission denied"
            ends = ". Job not submitted.\n" if request.program == "bsub" else "\n"
            request.answer(err=words + ends, code=255)
            return
        self.programs[request.program](request)

    def refuse(self, request: Request) -> None:
        """Commands wait, and say so again and again."""
        request.say(err="Cannot connect to LSF. Please wait ...\n")

    def control(self, what: str, value: Any) -> Any:
        """What tests ask of it."""
        if what == "lose":
            for task in self._tasks_of(value):
                self._lose(task)
        elif what == "forget":
            for job in self.engine.jobs.values():
                if all(task.state == ENDED for task in job.tasks):
                    self.forgotten.add(job.number)
        elif what == "refuse":
            self.refusal = value
        return [
            {
                "job": task.job.number, "index": task.index, "state": self.state(task),
                "runs": task.runs, "hosts": task.hosts, "name": task.job.name,
                "gpus": task.gpus,
            }
            for task in self.engine.tasks()
        ] if what == "tasks" else None  # fmt: skip

    def kill_all(self) -> None:
        """End all processes that any job began."""
        for _ in range(3):
            pids = with_variable("LSB_JOBFILENAME", f"{self.folder}/spool/")
            if not pids:
                return
            for pid in pids:
                _kill(pid, signal.SIGKILL)
            time.sleep(0.02)

    # What the engine asks.

    def pids(self, task: Task) -> list[int]:
        """All that the job began, on its other hosts too, whatever session it moved to."""
        return with_variable("LSB_JOBFILENAME", f"{task.variables['LSB_JOBFILENAME']}\0")

    def fits(self, task: Task) -> bool:
        """Dependency, array limit, then slots and GPUs."""
        job = task.job
        condition = job.asked["condition"]
        if condition is not None:
            holds = self._holds(condition, task)
            if holds is not True:
                task.waits = _NEVER if holds is None else _DEPENDS
                if holds is None and job.asked["-ti"]:
                    task.reason = ORPHAN
                    self.engine.end(task, None)
                return False
        if sum(other.state == RUNNING for other in job.tasks) >= job.at_once:
            task.waits = _ARRAY
            return False
        return self._place(task)

    def _place(self, task: Task) -> bool:
        asked = task.job.asked
        need, wants = asked["slots"], asked["gpus"]
        most = asked["ptile"] or need
        names: list[str] = []
        devices: dict[str, list[int]] = {}
        short = False
        for host in self._candidates(asked):
            free = min(self.engine.free_slots(host), need - len(names), most)
            if asked["is_together"] and free < need:
                continue
            if asked["ptile"] and free < min(most, need - len(names)):
                continue
            if asked["alone"] and self.engine.free_slots(host) < host.slots:
                continue
            if free < 1:
                continue
            if wants:
                number = wants.count * free if wants.per_task else wants.count
                found = self.engine.free_gpus(host, wants.alone)
                if len(found) < number:
                    short = True
                    continue
                devices[host.name] = sorted(found[:number])
            names += [host.name] * free
        if len(names) < need:
            task.waits = _TOO_FEW if short else _SLOTS
            return False
        task.slots, task.gpus = names, devices
        task.keeps_gpus = bool(wants and wants.alone)
        for name in task.hosts:
            self.engine.hosts[name].is_exclusive = asked["alone"]
        return True

    def _candidates(self, asked: dict[str, Any]) -> list[Host]:
        names = asked["hosts"] or self.engine.hosts
        return [self.engine.hosts[name] for name in names]

    def program(self, task: Task) -> tuple[list[str], dict[str, Any]]:
        """The job file; its environment, and where it prints."""
        job, label = task.job, self.label(task)
        command = job.asked["command"] or shlex.quote(str(job.script))
        name = f"{int(task.submitted)}.{job.number}.{task.index}.{task.runs}"
        path = spool(self.folder / "spool", name, _JOB_FILE.format(command=command))
        hosts = self.folder / "spool" / f"{name}.hostfile"
        hosts.write_text("".join(f"{host}\n" for host in task.slots))
        counts = " ".join(f"{host} {task.slots.count(host)}" for host in task.hosts)
        variables = {
            **job.environment,
            "LSB_JOBID": str(job.number), "LSB_JOBINDEX": str(task.index),
            "LSB_BATCH_JID": label, "LSB_JOBNAME": self.title(task),
            "LSB_QUEUE": job.asked["queue"], "LSB_HOSTS": " ".join(task.slots),
            "LSB_MCPU_HOSTS": counts, "LSB_DJOB_HOSTFILE": str(hosts),
            "LSB_DJOB_RANKFILE": str(hosts), "LSB_DJOB_NUMPROC": str(len(task.slots)),
            "LSB_MAX_NUM_PROCESSORS": str(len(task.slots)), "LSB_SUB_HOST": self.here,
            "LSB_SUB_USER": self.user, "LS_SUBCWD": job.asked["submitted from"],
            "LSB_JOBFILENAME": str(path), "LSB_CHKFILENAME": str(path),
            "LSB_TRAPSIGS": "trap # 15 10 12 2 1", "LSB_EXIT_PRE_ABORT": "99",
            "LSB_PROJECT_NAME": job.asked["project"], "LSB_EXEC_CLUSTER": "stand_in",
        }  # fmt: skip
        if job.is_array:
            variables["LSB_JOBINDEX_END"] = str(max(other.index for other in job.tasks))
            variables["LSB_JOBINDEX_STEP"] = "1"
        if task.reruns:
            variables["LSB_RESTART"] = "Y"
        if job.asked["gpus"]:
            devices = task.gpus[task.hosts[0]]
            variables["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, devices))
        task.variables = variables
        out, err = self._outputs(task)
        where = " ".join(f"<{task.slots.count(host)}*{host}>" for host in task.hosts)
        tasks, allocated = f"{len(task.slots)} Task(s)", f"{len(task.slots)} Slot(s)"
        said = f"Dispatched {tasks} on Host(s) {where}, Allocated {allocated} on Host(s) {where}"
        task.log += [(time.time(), said)]
        folder = job.folder if Path(job.folder).is_dir() else "/tmp"
        return [str(path)], {
            "env": variables, "cwd": folder, "stdin": subprocess.DEVNULL, "stdout": out,
            "stderr": err,
        }  # fmt: skip

    def started(self, task: Task) -> None:
        """Its history says so."""
        pid, home = task.process.pid if task.process else 0, task.variables["HOME"]
        running = f"Running with execution home <{home}>, Execution CWD <{task.job.folder}>"
        task.log += [
            (time.time(), f"Starting (Pid {pid})"),
            (time.time(), f"{running}, Execution Pid <{pid}>"),
        ]

    def _outputs(self, task: Task) -> tuple[Any, Any]:
        asked = task.job.asked

        def path(text: str) -> str:
            text = text.replace("%J", str(task.job.number)).replace("%I", str(task.index))
            return str(Path(task.job.folder, text))

        def opened(append: str, over: str) -> Any:
            if over in asked["options"]:
                return output(path(asked["options"][over]), "wb")
            return output(path(asked["options"][append])) if append in asked["options"] else None

        out, err = opened("-o", "-oo"), opened("-e", "-eo")
        # Without -o both would come by mail.
        return out or subprocess.DEVNULL, err or (subprocess.STDOUT if out else subprocess.DEVNULL)

    def at_limit(self, task: Task) -> None:
        """SIGUSR2, and ten minutes for what may be kept."""
        task.reason = RUNLIMIT
        self.engine.signal(task, _USER2)
        self.engine.later(task, self.settings["after_limit_s"], lambda: self._terminate(task))

    def _terminate(self, task: Task) -> None:
        """SIGINT, SIGTERM, SIGKILL; JOB_TERMINATE_INTERVAL between them."""
        wait = self.settings["terminate_interval_s"]
        self.engine.signal(task, signal.SIGCONT)
        self.engine.signal(task, signal.SIGINT)
        self.engine.later(task, wait, lambda: self.engine.signal(task, signal.SIGTERM))
        self.engine.later(task, 2 * wait, lambda: self.engine.signal(task, signal.SIGKILL))

    def ended(self, task: Task) -> None:
        """The top process ended: done, exited, or back into the queue."""
        for step in task.steps:
            _kill(step.process.pid, signal.SIGKILL)
        if task.code is not None and task.code < 0 and not task.reason:
            task.reason = EXTERNAL
        now = time.time()
        if task.runs and task.started:
            task.log += [(now, f"{self._how(task)} The CPU time used is 0.1 seconds")]
        if task.goes_back:
            task.log += [(now, f"Completed <exit>; {task.reason}")] if task.reason else []
            task.log += [(now, "Pending: Job has been requeued")]
            self.engine.requeue(task)
            task.waits = _AGAIN
            return
        if self.state(task) == "EXIT":
            task.log += [
                (now, f"Completed <exit>; {task.reason}" if task.reason else "Completed <exit>")
            ]
        else:
            task.log += [(now, "Completed <done>")]
        self.engine.at(now + self.settings["clean_period_s"], lambda: self._clean(task.job))

    @staticmethod
    def _how(task: Task) -> str:
        if task.code is not None and task.code < 0:
            return f"Exited by signal {-task.code}."
        return "Done successfully." if task.code == 0 else f"Exited with exit code {task.code}."

    def _clean(self, job: Job) -> None:
        over = time.time() - self.settings["clean_period_s"]
        if all(task.state == ENDED and task.finished <= over for task in job.tasks):
            self.forgotten.add(job.number)

    def _lose(self, task: Task) -> None:
        if task.state != RUNNING or task.is_unreachable:
            return
        task.is_unreachable = True
        task.log += [(time.time(), "Unknown; unable to reach the execution host")]
        for _ in range(3):
            self.engine.signal(task, signal.SIGKILL)

        def back() -> None:
            self.engine.signal(task, signal.SIGKILL)
            if task.process:
                task.process.wait()
            task.reason, task.goes_back = ZOMBIE, "-r" in task.job.asked["options"]
            task.reruns += task.goes_back
            self.engine.end(task, -int(signal.SIGKILL))

        self.engine.later(task, _BACK_S, back)

    # Dependencies: True, False for not yet, None for never.

    def _holds(self, condition: Condition, task: Task) -> bool | None:
        if condition[0] == "not":
            inner = self._holds(condition[1], task)
            return inner if inner is None else not inner
        if condition[0] in ("and", "or"):
            both = self._holds(condition[1], task), self._holds(condition[2], task)
            if condition[0] == "and":
                return None if None in both else all(both)
            return True if True in both else (None if both == (None, None) else False)
        return self._holds_of(condition, self._parents(condition[1], task))

    def _parents(self, word: str, task: Task) -> list[Task]:
        match = re.fullmatch(r"(.*)\[\*\]", word)
        tasks = self._named(match[1] if match else word)
        return [other for other in tasks if other.index == task.index] if match else tasks

    def _named(self, word: str) -> list[Task]:
        if re.fullmatch(r"\d+(\[[\d,-]+\])?", word):
            return self._tasks_of(word)
        name = word.removesuffix("*")
        return [
            task for task in self.engine.tasks()
            if task.job.number not in self.forgotten
            and (task.job.name == word or (name != word and task.job.name.startswith(name)))
        ]  # fmt: skip

    def _holds_of(self, condition: Condition, parents: list[Task]) -> bool | None:
        name, _, operator, number = condition
        states = [self.state(task) for task in parents]
        over = [state in ("DONE", "EXIT") for state in states]
        if name.startswith("num"):
            return _counted(name, states, operator, number)
        if name == "started":
            return all(state not in ("PEND", "PSUSP") for state in states)
        if name in ("ended", "post_done", "post_err"):
            return all(over)
        if name == "exit":
            if "DONE" in states:
                return None
            fits = [_compare(self.exit_code(task), operator, number) for task in parents]
            if operator and any(
                is_over and not fit for is_over, fit in zip(over, fits, strict=True)
            ):
                return None
            return all(over)
        return None if "EXIT" in states else all(over)

    # What a job is called, and how it stands.

    def label(self, task: Task) -> str:
        """12, or 12[3]."""
        return f"{task.job.number}[{task.index}]" if task.job.is_array else str(task.job.number)

    def title(self, task: Task) -> str:
        """The name, an element's with its index."""
        return f"{task.job.name}[{task.index}]" if task.job.is_array else task.job.name

    def state(self, task: Task) -> str:
        """LSF's word."""
        if task.state == WAITING:
            return "PSUSP" if task.hold else "PEND"
        if task.state == RUNNING:
            if task.is_unreachable:
                return "UNKWN"
            return "USUSP" if task.is_stopped else "RUN"
        return "DONE" if task.code == 0 else "EXIT"

    @staticmethod
    def exit_code(task: Task) -> int:
        """As bjobs has it: 128 and the signal for one that a signal ended."""
        code = task.code or 0
        return 128 - code if code < 0 else code

    def _tasks_of(self, word: str, is_known: bool = True) -> list[Task]:
        match = re.fullmatch(r"(\d+)(?:\[([\d,-]+)\])?", word)
        job = self.engine.jobs.get(int(match[1])) if match else None
        if match is None or job is None or (is_known and job.number in self.forgotten):
            return []
        if not match[2]:
            return list(job.tasks)
        wanted: set[int] = set()
        for part in match[2].split(","):
            first, _, last = part.partition("-")
            if not first.isdigit() or (last and not last.isdigit()):
                return []
            wanted |= set(range(int(first), int(last or first) + 1))
        return [task for task in job.tasks if job.is_array and task.index in wanted]

    # The programs.

    def _lsid(self, request: Request) -> None:
        request.answer(
            "IBM Spectrum LSF Standard 10.1.0.14\n"
            "Copyright International Business Machines Corp. 1992, 2016.\n\n"
            f"My cluster name is stand_in\nMy master name is {next(iter(self.engine.hosts))}\n"
        )

    def _bsub(self, request: Request) -> None:
        try:
            job, said = self._submitted(request)
        except Refused as error:
            request.answer(err=f"{error}. Job not submitted.\n", code=255)
            return
        self.engine.add(job)
        for task in job.tasks:
            task.hold = "u" if "-H" in job.asked["options"] else ""
            task.waits = _HELD if task.hold else _NEW
            place = f"to Queue <{job.asked['queue']}>, CWD <{job.folder}>"
            task.log += [(task.submitted, f"Submitted from host <{self.here}>, {place}")]
        request.answer(f"Job <{job.number}> is submitted to {said} <{job.asked['queue']}>.\n")

    def _submitted(self, request: Request) -> tuple[Job, str]:
        said = bsub_words(request.words)
        script = "" if said.command else request.stdin()
        if script:
            said.merge(bsub_lines(script))
        if not said.command and not re.search(r"^\s*[^#\s]", script, re.MULTILINE):
            raise Refused("No command is specified in the script file")
        if self.refusal:
            raise Refused(self.refusal)
        options = said.options
        sections = requirements(said.requirements)
        self._known(options)
        span = dict(part.split("=") for part in [sections.get("span", "")] if "=" in part)
        name = job_name(options.get("-J", "") or _shown(said.command, script),
                        self.settings["max_job_array_size"])  # fmt: skip
        need = slots(options.get("-n", "1"))
        if need > sum(host.slots for host in self.engine.hosts.values()):
            raise Refused("Too many processors requested")
        if "-M" in options:
            memory(options["-M"])
        limit = minutes(options["-W"]) if "-W" in options else None
        asked = {
            "options": options,
            "condition": self._condition(options.get("-w")),
            "-ti": "-ti" in options,
            "slots": need,
            "ptile": int(span.get("ptile", 0)),
            "is_together": span.get("hosts") == "1",
            "alone": "-x" in options,
            "gpus": gpus(options["-gpu"]) if "-gpu" in options else None,
            "hosts": [word.rstrip("!+0123456789") if word not in self.engine.hosts else word
                      for word in options.get("-m", "").split()],
            "queue": options.get("-q", self.settings["queues"][0]).split()[0],
            "project": options.get("-P", "default"),
            "submitted from": request.folder,
            "command": _quoted(said.command),
            "requirements": " ".join(f"{key}[{value}]" for key, value in sections.items()),
        }  # fmt: skip
        variables = self._variables(options, request.environment)
        self.engine.number += 1
        number = self.engine.number
        path = self.folder / "spool" / f"{number}.shell"
        if script:
            spool(path.parent, path.name, script)
        folder = str(Path(request.folder, options.get("-cwd", ".")))
        minute = self.settings["minute_s"]
        job = Job(
            number, name.name, bool(name.indices), path, tuple(said.command), variables, folder,
            name.at_once or max(len(name.indices), 1), None if limit is None else limit * minute,
            asked,
        )  # fmt: skip
        job.tasks = [Task(job, index) for index in name.indices or (0,)]
        return job, "queue" if "-q" in options else "default queue"

    def _variables(self, options: dict[str, str], submitted: dict[str, str]) -> dict[str, str]:
        kept = environment(options.get("-env"), submitted)
        if "-L" in options:
            if not Path(options["-L"]).is_absolute() or not Path(options["-L"]).exists():
                raise Refused(f"{options['-L']}: Bad argument for option -L")
            words = [options["-L"], "-lc", "env -0"]
            said = subprocess.run(words, capture_output=True, check=True, env=kept, timeout=20)
            lines = [line for line in said.stdout.decode().split("\0") if "=" in line]
            kept = {line.partition("=")[0]: line.partition("=")[2] for line in lines}
        own = pwd.getpwnam(self.user)
        kept = {
            name: value for name, value in kept.items()
            if not name.startswith(("LSB_", "LS_JOB", "LS_SUBCWD"))
        }  # fmt: skip
        kept.pop("PWD", None)
        return {**kept, "HOME": own.pw_dir, "USER": own.pw_name, "LOGNAME": own.pw_name}

    def _known(self, options: dict[str, str]) -> None:
        settings = self.settings
        queue = options.get("-q", settings["queues"][0])
        for name in queue.split() or [queue]:
            if name not in settings["queues"]:
                raise Refused(f"{name}: No such queue")
        for option, known, words in (
            ("-P", settings["projects"], "Request aborted by esub"),
            ("-G", settings["user_groups"], "{}: No such user/host group"),
            ("-app", settings["applications"], "{}: No such application profile"),
            ("-U", settings["reservations"], "{}: No such advance reservation"),
        ):
            chosen = options.get(option, "default" if option == "-P" else None)
            if chosen is not None and chosen not in known and (known or option != "-P"):
                raise Refused(words.format(chosen))
        for host in options.get("-m", "").split():
            if (
                host not in self.engine.hosts
                and host.rstrip("!+0123456789") not in self.engine.hosts
            ):
                raise Refused(f"{host}: Bad host name, host group name or cluster name")

    def _condition(self, text: str | None) -> Condition | None:
        if text is None:
            return None
        condition = dependency(text)
        for leaf in leaves(condition):
            word = re.sub(r"\[\*\]$", "", leaf[1])
            if not self._named(word):
                raise Refused(f"{word}: No matching job found")
        return condition

    # bjobs, bhist.

    def _bjobs(self, request: Request) -> None:
        try:
            flags, values, words = _options(
                request.words, "-a -d -r -p -s -w -W -noheader -json -X -hms", "-J -q -u -m -o -P"
            )
        except Refused as error:
            request.answer(err=f"bjobs: {error}\n", code=255)
            return
        if "-json" in flags and "-noheader" in flags:
            request.answer(err="bjobs: -json and -noheader: Conflicting options\n", code=255)
            return
        try:
            fields = FIELDS(values["-o"]) if "-o" in values else None
        except ValueError as error:
            request.answer(err=f"bjobs: {error}\n", code=255)
            return
        tasks, missing = self._listed(flags, values, words)
        err = "".join(f"Job <{word}> is not found\n" for word in missing)
        code = 255 if missing else 0
        is_json = fields is not None and "-json" in flags
        if not tasks and not missing:
            err = self._nothing(flags, values)
            code = 255 if self.settings["consistent_exit_code"] or "-J" in values else 0
        if fields is not None and is_json:
            records = [
                {TITLES[key]: self._value(task, key) for key in fields.names} for task in tasks
            ]
            request.answer(json_text("bjobs", records) if tasks or not err else "", err, code)
            return
        out = ""
        if tasks and fields is not None:
            rows = [[self._value(task, key) or "-" for key in fields.names] for task in tasks]
            out = columns(fields, rows, with_header="-noheader" not in flags)
        elif tasks:
            out = self._table(tasks, "-noheader" not in flags)
        request.answer(out, err, code)

    @staticmethod
    def _nothing(flags: set[str], values: dict[str, str]) -> str:
        if "-J" in values:
            return f"Job <{values['-J']}> is not found\n"
        place = f" in queue <{values['-q']}>" if "-q" in values else ""
        words = {
            "-a": "No job found", "-d": "No DONE/EXIT job found", "-p": "No pending job found",
            "-s": "No suspended job found", "-r": "No running job found",
        }  # fmt: skip
        said = next((words[flag] for flag in words if flag in flags), "No unfinished job found")
        return f"{said}{place}\n"

    def _listed(
        self, flags: set[str], values: dict[str, str], words: list[str]
    ) -> tuple[list[Task], list[str]]:
        if [word for word in words if word != "0"]:
            missing = [word for word in words if not self._tasks_of(word)]
            return [task for word in words for task in self._tasks_of(word)], missing
        kinds = {
            "-r": ("RUN", "UNKWN"), "-p": ("PEND",), "-s": ("PSUSP", "USUSP"),
            "-d": ("DONE", "EXIT"),
        }  # fmt: skip
        chosen = [state for flag in kinds if flag in flags for state in kinds[flag]]
        if "-a" in flags:
            chosen = ["RUN", "UNKWN", "PEND", "PSUSP", "USUSP", "DONE", "EXIT"]
        chosen = chosen or ["RUN", "UNKWN", "PEND", "PSUSP", "USUSP"]
        tasks = [
            task for task in self.engine.tasks()
            if task.job.number not in self.forgotten and self.state(task) in chosen
            and ("-J" not in values or _is_named(task, values["-J"]))
            and values.get("-q", task.job.asked["queue"]) == task.job.asked["queue"]
            and values.get("-u", self.user) in (self.user, "all")
            and values.get("-P", task.job.asked["project"]) == task.job.asked["project"]
            and ("-m" not in values or values["-m"] in task.hosts)
        ]  # fmt: skip
        return tasks, []

    def _table(self, tasks: list[Task], with_header: bool) -> str:
        lines = [
            "JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME"
        ] * with_header
        for task in tasks:
            where = (task.hosts or [""])[0]
            many = f"{len(task.slots)}*{where}" if len(task.slots) > 1 else where
            title = self.title(task)
            title = title if len(title) <= 10 else f"*{title[-9:]}"
            lines.append(
                f"{task.job.number:<7d} {self.user:<7.7s} {self.state(task):<5.5s} "
                f"{task.job.asked['queue']:<10.10s} {self.here:<11.11s} {many:<11.11s} "
                f"{title:<10.10s} {_when(task.submitted)}"
            )
        return "".join(f"{line}\n" for line in lines)

    def _value(self, task: Task, key: str) -> str:
        job, state = task.job, self.state(task)
        over = state in ("DONE", "EXIT")
        limit = job.limit_s
        values: dict[str, Callable[[], str]] = {
            "jobid": lambda: str(job.number),
            "jobindex": lambda: str(task.index),
            "stat": lambda: state,
            "user": lambda: self.user,
            "queue": lambda: job.asked["queue"],
            "job_name": lambda: self.title(task),
            "job_description": lambda: job.asked["options"].get("-Jd", ""),
            "proj_name": lambda: job.asked["project"],
            "application": lambda: job.asked["options"].get("-app", ""),
            "user_group": lambda: job.asked["options"].get("-G", ""),
            "rsvid": lambda: job.asked["options"].get("-U", ""),
            "from_host": lambda: self.here,
            "exec_host": lambda: ":".join(task.slots),
            "first_host": lambda: (task.slots or [""])[0],
            "nexec_host": lambda: str(len(task.hosts)) if task.hosts else "",
            "slots": lambda: str(job.asked["slots"]),
            "nreq_slot": lambda: str(job.asked["slots"]),
            "nalloc_slot": lambda: str(len(task.slots)) if task.slots else "",
            "exit_code": lambda: str(self.exit_code(task)) if state == "EXIT" and task.runs else "",
            "exit_reason": lambda: task.reason if state == "EXIT" else "",
            "pend_reason": lambda: (_HELD if task.hold else task.waits) if not task.started else "",
            "dependency": lambda: job.asked["options"].get("-w", ""),
            "submit_time": lambda: _when(task.submitted),
            "start_time": lambda: _when(task.started) if task.started else "",
            "finish_time": lambda: (
                _when(task.finished) + (" L" if limit else "") if over
                else _when(task.started + limit) + " L" if limit and task.started else ""
            ),
            "run_time": lambda: (
                f"{int((task.finished or time.time()) - task.started)} second(s)"
                if task.started else "0 second(s)"
            ),
            "runtimelimit": lambda: (
                f"{limit / self.settings['minute_s']:.1f}" if limit else ""
            ),
            "pids": lambda: ",".join(map(str, self.pids(task))) if state == "RUN" else "",
            "command": lambda: job.asked["command"] or str(job.script),
            "sub_cwd": lambda: job.asked["submitted from"],
            "exec_cwd": lambda: job.folder if task.started else "",
            "output_file": lambda: job.asked["options"].get("-o", ""),
            "error_file": lambda: job.asked["options"].get("-e", ""),
            "gpu_num": lambda: str(sum(map(len, task.gpus.values()))) if task.gpus else "",
            "effective_resreq": lambda: job.asked["requirements"] if task.started else "",
            "combined_resreq": lambda: job.asked["requirements"],
            "memlimit": lambda: job.asked["options"].get("-M", ""),
        }  # fmt: skip
        return values[key]() if key in values else ""

    def _bhist(self, request: Request) -> None:
        try:
            flags, values, words = _options(
                request.words, "-a -d -e -l -p -r -s -w -UF", "-J -n -u -q -m -P"
            )
        except Refused as error:
            request.answer(err=f"bhist: {error}\n", code=255)
            return
        known = [task for word in words for task in self._tasks_of(word, is_known=False)]
        missing = [word for word in words if not self._tasks_of(word, is_known=False)]
        if "-J" in values:
            known += [task for task in self.engine.tasks() if _is_named(task, values["-J"])]
        if missing or not known:
            said = [f"Job <{word}>: No matching job found\n" for word in missing]
            request.answer(err="".join(said) or "No matching job found\n", code=255)
            return
        if "-l" not in flags:
            request.answer(err="bhist: this stand-in has -l alone\n", code=255)
            return
        rule = "-" * 78
        request.answer(
            f"{rule}\n\n".join(self._history(task, "-UF" not in flags) for task in known)
        )

    def _history(self, task: Task, wrap: bool) -> str:
        job = task.job
        named = f", Job Name <{self.title(task)}>"
        head = (
            f"Job <{self.label(task)}>{named}, User <{self.user}>, Project <{job.asked['project']}>"
        )
        command = job.asked["command"] or f"#!/bin/bash;{job.script.name}"
        lines = [f"{head}, Command <{command}>"]
        for when, words in task.log:
            completes = words.startswith("Completed")
            lines += [""] * completes
            lines.append(f"{time.strftime('%a %b %e %H:%M:%S', time.localtime(when))}: {words};")
        end = task.finished or time.time()
        begun = task.started or end
        pend, ran = int(begun - task.submitted), int(end - begun)
        text = "\n".join(wrapped(line) if wrap else line for line in lines)
        return (
            f"{text}\n\nSummary of time in seconds spent in various states by  "
            f"{time.strftime('%a %b %e %H:%M:%S', time.localtime(end))}\n"
            "  PEND     PSUSP    RUN      USUSP    SSUSP    UNKWN    TOTAL\n"
            f"  {pend:<8d} 0        {ran:<8d} 0        0        0        {pend + ran:<8d}\n"
        )

    # bkill, bstop, bresume, brequeue.

    def _bkill(self, request: Request) -> None:
        try:
            flags, values, words = _options(request.words, "-l -r -b", "-s -J -m -q -u -C")
            number = _signal(values.get("-s", "KILL"))
        except Refused as error:
            request.answer(err=f"{error}\n", code=255)
            return
        if "-l" in flags:
            request.answer(" ".join(each.name[3:] for each in signal.Signals) + "\n", code=255)
            return
        done = {signal.SIGKILL: "terminated", signal.SIGSTOP: "stopped", signal.SIGCONT: "resumed"}
        word = done.get(signal.Signals(number), "signaled")
        asked = "-s" in values

        def act(task: Task) -> str:
            if task.state == ENDED:
                return "Job has already finished"
            return self._signalled(task, number, asked or "-r" in flags)

        self._each(request, words, values, word, act)

    def _signalled(self, task: Task, number: int, directly: bool) -> str:
        if number == signal.SIGSTOP:
            return self._stopped(task)
        if number == signal.SIGCONT:
            return self._resumed(task)
        if task.state == WAITING:
            if number != signal.SIGKILL:
                return "Job has not started yet"
            task.reason = OWNER
            self._asked_for(task, "KILL")
            self.engine.end(task, None)
            return ""
        self._asked_for(task, signal.Signals(number).name[3:])
        if number == signal.SIGKILL:
            task.reason, task.goes_back = task.reason or OWNER, False
            if not directly:
                self._terminate(task)
                return ""
        self.engine.signal(task, number)
        return ""

    def _asked_for(self, task: Task, name: str) -> None:
        words = f"Signal <{name}> requested by user or administrator <{self.user}>"
        task.log += [(time.time(), words)]

    def _bstop(self, request: Request) -> None:
        self._simple(request, "stopped", self._stopped)

    def _bresume(self, request: Request) -> None:
        self._simple(request, "resumed", self._resumed)

    def _simple(self, request: Request, word: str, act: Callable[[Task], str]) -> None:
        try:
            _, values, words = _options(request.words, "-a -d", "-J -m -q -u -C")
        except Refused as error:
            request.answer(err=f"{error}\n", code=255)
            return
        self._each(request, words, values, word, act)

    def _stopped(self, task: Task) -> str:
        if task.state == ENDED:
            return "Job has already finished"
        if task.state == WAITING:
            task.hold = "u"
            return ""
        task.is_stopped = True
        self.engine.signal(task, signal.SIGTSTP if len(task.slots) > 1 else signal.SIGSTOP)
        return ""

    def _resumed(self, task: Task) -> str:
        if task.state == ENDED:
            return "Job has already finished"
        if task.state == WAITING:
            task.hold, task.waits = "", _NEW
            return ""
        task.is_stopped = False
        self.engine.signal(task, signal.SIGCONT)
        return ""

    def _brequeue(self, request: Request) -> None:
        try:
            flags, values, words = _options(request.words, "-a -d -e -H -p -r", "-J -u")
        except Refused as error:
            request.answer(err=f"{error}\n", code=255)
            return
        kinds = {"-d": ("DONE",), "-e": ("EXIT",), "-p": ("PEND", "PSUSP"), "-r": ("RUN",)}
        states = {state for flag in kinds if flag in flags for state in kinds[flag]}
        if "-a" in flags:
            states = {"DONE", "EXIT", "RUN", "USUSP"}
        states = states or {"RUN", "USUSP"}

        def act(task: Task) -> str:
            state = self.state(task)
            if state not in states:
                over = state in ("DONE", "EXIT")
                return "Job has already finished" if over else "Job has not started yet"
            hold = "u" if "-H" in flags else ""
            if task.state == RUNNING:
                task.goes_back, task.reason, task.hold = True, REQUEUED, hold
                self._asked_for(task, "REQUEUE")
                self._terminate(task)
            elif task.state == ENDED:
                task.log += [(time.time(), "Pending: Job has been requeued")]
                self.engine.requeue(task)
                task.hold, task.waits = hold, _AGAIN
            return ""

        self._each(request, words, values, "requeued", act)

    def _each(
        self, request: Request, words: list[str], values: dict[str, str], word: str,
        act: Callable[[Task], str],
    ) -> None:  # fmt: skip
        groups = self._groups(words, values)
        if groups is None:
            said = "Job ID or one of '-m', '-u' '-q' and '-J' must be specified.\n"
            request.answer(err=said, code=255)
            return
        if not groups:
            request.answer(err="No matching job found\n", code=255)
            return
        lines, errors = [], []
        for label, tasks in groups:
            problems = [act(task) for task in tasks]
            if not tasks:
                errors.append(f"Job <{label}>: No matching job found\n")
            elif all(problems):
                errors.append(f"Job <{label}>: {problems[0]}\n")
            else:
                lines.append(f"Job <{label}> is being {word}\n")
        request.answer("".join(lines), "".join(errors), 255 if errors else 0)

    def _groups(
        self, words: list[str], values: dict[str, str]
    ) -> list[tuple[str, list[Task]]] | None:
        if [word for word in words if word != "0"]:
            groups: list[tuple[str, list[Task]]] = []
            for word in words:
                tasks = self._tasks_of(word)
                if "[" in word and tasks:
                    groups += [(self.label(task), [task]) for task in tasks]
                else:
                    groups.append((word, tasks))
            return groups
        if not words and not values.keys() & {"-J", "-q", "-u", "-m"}:
            return None
        jobs = [
            job for job in self.engine.jobs.values()
            if any(task.state != ENDED for task in job.tasks)
            and ("-J" not in values or any(_is_named(task, values["-J"]) for task in job.tasks))
            and values.get("-q", job.asked["queue"]) == job.asked["queue"]
        ]  # fmt: skip
        # Without 0 the one that was submitted last.
        return [(str(job.number), list(job.tasks)) for job in (jobs if words else jobs[-1:])]

    # blaunch.

    def _blaunch(self, request: Request) -> None:
        words, chosen, shell, reads = list(request.words), None, True, True
        while words and words[0].startswith("-"):
            option = words.pop(0)
            if option == "-n":
                reads = False
            elif option == "-no-shell":
                shell = False
            elif option == "-z" and words:
                chosen = words.pop(0).split()
            elif option == "-u" and words:
                chosen = Path(request.folder, words.pop(0)).read_text().split()
            elif option != "-use-login-shell":
                request.answer(err=f"blaunch: {option}: Illegal option\n", code=255)
                return
        task = self._task_of(request.environment)
        if task is None:
            request.answer(err="blaunch: not within a job of LSF: LSB_JOBID is not set\n", code=255)
            return
        if chosen is None and words and words[0] in self.engine.hosts:
            chosen = [words.pop(0)]
        hosts = task.slots if chosen is None else chosen
        outside = [host for host in hosts if host not in task.hosts]
        if outside or not words or not hosts:
            what = f"Host <{outside[0]}> is not allocated for this job" if outside else "no command"
            request.answer(err=f"blaunch: {what}\n", code=255)
            return
        _Launch(self, request, task, hosts, words, shell, reads)

    def _task_of(self, variables: dict[str, str]) -> Task | None:
        for task in self.engine.tasks():
            is_same = (
                str(task.job.number) == variables.get("LSB_JOBID")
                and str(task.index) == variables.get("LSB_JOBINDEX")
                and task.variables.get("LSB_JOBFILENAME") == variables.get("LSB_JOBFILENAME")
            )
            if is_same and task.state == RUNNING:
                return task
        return None


class _Launch:
    """A blaunch that waits for its tasks."""

    def __init__(
        self, lsf: Lsf, request: Request, task: Task, hosts: list[str], words: list[str],
        shell: bool, reads: bool,
    ) -> None:  # fmt: skip
        """Start them: as a remote shell would, with the environment and folder of blaunch."""
        self.request, self.codes, self.count = request, list[int](), len(hosts)
        self.steps: list[Step] = []
        arguments = ["/bin/sh", "-c", " ".join(words)] if shell else words
        request.on_signal = self.signal
        request.on_leave = lambda: self.signal(int(signal.SIGKILL))
        for host in hosts:
            variables = dict(request.environment)
            if task.gpus:
                variables["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, task.gpus[host]))
            try:
                step = lsf.engine.step(
                    task, host, arguments, self.ended, env=variables, cwd=request.folder,
                    stdin=request.fds[0] if reads else subprocess.DEVNULL,
                    stdout=request.fds[1], stderr=request.fds[2],
                )  # fmt: skip
            except OSError as error:
                request.say(err=f"{words[0]}: {error.strerror}\n")
                self.ended(127)
            else:
                self.steps.append(step)

    def ended(self, code: int) -> None:
        """One ended; when all have, so does blaunch, with the first code that is not 0."""
        self.codes.append(128 - code if code < 0 else code)
        if len(self.codes) == self.count:
            self.request.answer(code=next(filter(None, self.codes), 0))

    def signal(self, number: int) -> None:
        """Hand a signal to all of them."""
        for step in self.steps:
            if step.process.poll() is None:
                _kill_group(step.process.pid, number)


def _options(
    words: Iterable[str], flags: str, valued: str
) -> tuple[set[str], dict[str, str], list[str]]:
    """Flags, values by option, and the rest.

    Raises:
        Refused: An option is unknown, or lacks its value.
    """
    found: set[str] = set()
    values: dict[str, str] = {}
    rest, left = list(words), []
    while rest:
        word = rest.pop(0)
        if word in flags.split():
            found.add(word)
        elif word in valued.split():
            if not rest:
                raise Refused(f"{word}: option requires an argument")
            values[word] = rest.pop(0)
        elif word.startswith("-"):
            raise Refused(f"{word}: Illegal option")
        elif not re.fullmatch(r"\d+(\[[\d,-]+\])?", word):
            raise Refused(f"{word}: Illegal job ID")
        else:
            left.append(word)
    return found, values, left


def _signal(name: str) -> int:
    number = signal_number(name)
    if not number:
        raise Refused(f"{name}: Illegal signal value")
    return number


def _is_named(task: Task, word: str) -> bool:
    name, _, index = word.partition("[")
    same = task.job.name == name or (
        name.endswith("*") and task.job.name.startswith(name.removesuffix("*"))
    )
    return same and (not index or index == f"{task.index}]")


def _counted(name: str, states: list[str], operator: str, number: int) -> bool | None:
    kinds = {
        "numdone": ("DONE",), "numended": ("DONE", "EXIT"), "numexit": ("EXIT",),
        "numhold": ("PSUSP",), "numpend": ("PEND",), "numrun": ("RUN",),
        "numstart": ("RUN", "USUSP", "UNKWN", "DONE", "EXIT"),
    }  # fmt: skip
    count = sum(state in kinds[name] for state in states)
    if operator == "*":
        operator, number = "==", len(states)
    if _compare(count, operator, number):
        return True
    can_change = any(state not in ("DONE", "EXIT") for state in states)
    return False if can_change else None


def _compare(count: int, operator: str, number: int) -> bool:
    return {
        "": True, ">": count > number, "<": count < number, ">=": count >= number,
        "<=": count <= number, "==": count == number, "!=": count != number,
    }[operator]  # fmt: skip


def _quoted(words: list[str]) -> str:
    """A command line as bsub keeps it for a shell.

    Source: OpenLava's CopyCommand, without its cases of $ and backslashes.
    """
    if not words:
        return ""
    return " ".join([words[0], *(shlex.quote(word) if " " in word else word for word in words[1:])])


def _shown(command: list[str], script: str) -> str:
    first = next((line for line in script.splitlines() if line.strip()), "")
    return (" ".join(command) or first)[:4094].replace("[", "(").replace("]", ")")


def _when(when: float) -> str:
    return time.strftime("%b %e %H:%M", time.localtime(when))


def _kill(pid: int, number: int) -> None:
    with suppress(OSError):
        os.kill(pid, number)


def _kill_group(pid: int, number: int) -> None:
    with suppress(OSError):
        os.killpg(pid, number)
