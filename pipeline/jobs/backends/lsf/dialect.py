"""LSF's words: bsub, bjobs, bhist, bresume, bkill and blaunch.

Source: IBM Spectrum LSF 10.1 command reference (bsub, bjobs, bhist, bkill, bresume, brequeue,
blaunch). Tested with stand-ins that go by it, not with an LSF.
"""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pipeline.jobs.backends.batch.commands import SchedulerSilent, Variables, printed, shown
from pipeline.jobs.backends.batch.dialect import Predecessor, Row, Standing
from pipeline.jobs.backends.batch.job import BatchJob
from pipeline.jobs.backends.batch.node_launch import node_launch
from pipeline.jobs.backends.batch.portions import portions
from pipeline.jobs.backends.batch.settings import BatchSettings
from pipeline.jobs.backends.lsf.settings import LsfSettings, lsf_settings
from pipeline.jobs.request import Stage
from pipeline.jobs.resources import Resources

_TITLE = "LSF"
_SUBMITTED = re.compile(r"^Job <(\d+)> is submitted to ", re.MULTILINE)
_MOST_ASKED = 500
"""Jobs that one command is asked about."""
_STANDINGS: dict[str, Standing] = {
    "PEND": "waits", "PSUSP": "waits", "WAIT": "waits", "RUN": "runs", "USUSP": "runs",
    "SSUSP": "runs", "UNKWN": "runs", "PROV": "waits", "DONE": "ended", "EXIT": "ended",
    "ZOMBI": "ended",
}  # fmt: skip
"""Meaning of states. Source: bjobs(1), STAT. UNKWN has lost touch with its host, and may come
back."""
_FIELDS = "jobid jobindex stat exit_reason pend_reason"


class LsfDialect:
    """The words of LSF."""

    name = "lsf"
    title = _TITLE
    configured: tuple[str, ...] = ("LSF_ENVDIR", "LSF_SERVERDIR", "LSF_BINDIR", "LSF_LIBDIR")
    words = (Path(__file__).parent / "words.sh").read_text(encoding="utf-8")
    passes_variables = True
    warns = False

    def settings(self, file: Path | None, resources: Resources, user: str) -> LsfSettings:
        """The table [lsf]."""
        return lsf_settings(file, resources, user)

    def check(self, resources: Resources, settings: BatchSettings) -> None:
        """LSF has words for all of them."""

    def submission(
        self, job: BatchJob, stage: Stage, predecessor: Predecessor | None
    ) -> tuple[str, ...]:
        """A command line of bsub, which counts slots: one for each core of each rank."""
        request, resources, settings = job.request, job.request.resources, _settings(job)
        per_node, gpus, cores = job.ranks_per_node(stage), job.gpus(stage), job.cores
        count = len(stage.commands)
        most = f"%{request.parallel}" if request.parallel < count else ""
        spread = f"span[ptile={per_node * cores}]" if stage.ranks > 1 else "span[hosts=1]"
        # For each task where a task is a rank: the last node may have fewer.
        of_gpus = f"num={gpus}/task" if cores == 1 else f"num={gpus * per_node}/host"
        memory = resources.memory_mb
        flags: list[tuple[str, object]] = [
            ("-J", f"{job.name}[1-{count}]{most}" if count > 1 else job.name),
            ("-cwd", job.paths.folder),
            ("-o", "/dev/null"),
            ("-q", settings.queue),
            ("-P", settings.account),
            ("-G", settings.group),
            ("-app", settings.application),
            ("-U", settings.reservation),
            ("-Jd", f"framesift user {request.user}" if request.user else ""),
            ("-n", stage.ranks * cores),
            ("-R", spread if stage.ranks * cores > 1 else ""),
            ("-R", f"rusage[mem={memory}MB/host]" if memory else ""),
            ("-R", f"select[{resources.constraint}]" if resources.constraint else ""),
            ("-m", resources.nodes),
            ("-gpu", f"{of_gpus}:j_exclusive=yes" if gpus else ""),
            ("-W", resources.wall_minutes or ""),
        ]
        words = [word for flag, value in flags if value != "" for word in (flag, str(value))]
        # On hold until its number is kept: what nobody knows of never begins.
        words += ["-H", "-r"]
        if predecessor is not None:
            condition = "ended" if predecessor.may_fail else "done"
            words += ["-w", f"{condition}({predecessor.number})", "-ti"]
        return ("bsub", *words)

    def signals_ranks(self, job: BatchJob, stage: Stage) -> bool:  # noqa: ARG002
        """It signals all processes of a job, the script's, too."""
        return False

    def container(self, job: BatchJob, stage: Stage) -> list[str]:
        """Apptainer's words."""
        return job.container(stage)

    def launcher(self, job: BatchJob, stage: Stage) -> list[str]:
        """Words of blaunch, mpirun or jsrun."""
        launcher = job.settings.launcher if stage.launcher == "horovod" else "blaunch"
        if launcher == "mpirun":
            return job.mpirun(stage)
        if launcher == "jsrun":
            words = ["jsrun", "--np", str(stage.ranks), "--rs_per_host"]
            words += [str(job.ranks_per_node(stage)), "--tasks_per_rs", "1"]
            words += ["--cpu_per_rs", str(job.cores), "--gpu_per_rs", str(job.gpus(stage))]
            return [*words, *job.container(stage)]
        return node_launch(job, stage, "blaunch")

    def submit(self, command: Sequence[str], script: str, variables: Variables) -> str:
        """The number that bsub prints."""
        # A job of LSF's that submits another: the new one is none of its tasks.
        own = {
            name: value for name, value in variables.items()
            if name in self.configured or not name.startswith(("LSB_", "LS_", "LSF_", "BSUB_"))
        }  # fmt: skip
        output = printed(command, own, _TITLE, script)
        match = _SUBMITTED.search(output)
        if match is None:
            raise SchedulerSilent(f"bsub printed {shown(output)}, and no job number")
        return match[1]

    def rows(self, numbers: Iterable[str], variables: Variables) -> dict[tuple[str, int], Row]:
        """What bjobs lists, those that ended within the last hour, too."""
        known = {}
        for portion in portions(sorted(set(numbers), key=int), _MOST_ASKED):
            for record in _records(["-o", _FIELDS, *portion], variables):
                number, index, state = (record.get(of, "") for of in ("JOBID", "JOBINDEX", "STAT"))
                if not number.isdigit() or state not in _STANDINGS:
                    raise SchedulerSilent(f"bjobs printed {shown(json.dumps(record))}")
                standing = _STANDINGS[state]
                reason = record.get("PEND_REASON" if standing == "waits" else "EXIT_REASON", "")
                row = Row(state, _reason(reason) or state, standing)
                known[number, max(int(index or 0) - 1, 0)] = row
        return known

    def numbers_of(self, name: str, variables: Variables) -> list[str]:
        """By bjobs, too."""
        records = _records(["-o", "jobid", "-J", name], variables)
        return sorted({record.get("JOBID", "") for record in records}, key=int)

    def last_state(self, number: str, index: int, variables: Variables) -> str:
        """How it ended, in bhist's words."""
        try:
            output = printed(["bhist", "-l", "-n", "0", number], variables, _TITLE, may_refuse=True)
        except SchedulerSilent:
            return ""
        text = " ".join(output.split())
        of_task = re.split(rf"Job <{number}(?:\[(\d+)\])?>", text)[1:]
        for task, words in zip(of_task[::2], of_task[1::2], strict=True):
            ends = re.findall(
                r"(TERM_[A-Z_]+|Exited with exit code \d+|Exited by signal \d+)", words
            )
            if int(task or 0) in (0, index + 1) and ends:
                return str(ends[-1])
        return ""

    def release(self, numbers: Sequence[str], variables: Variables) -> None:
        """By bresume."""
        for portion in portions(numbers, _MOST_ASKED):
            printed(["bresume", *portion], variables, _TITLE)

    def withdraw(self, numbers: Sequence[str], variables: Variables) -> None:
        """By bkill, for those that bjobs calls waiting: it knows no states."""
        rows = self.rows(numbers, variables)
        self.delete(_waiting(rows), variables)

    def delete(self, numbers: Sequence[str], variables: Variables) -> None:
        """By bkill."""
        for portion in portions(numbers, _MOST_ASKED):
            printed(["bkill", *portion], variables, _TITLE, may_refuse=True)

    def warn(self, numbers: Sequence[str], variables: Variables) -> None:
        """Not possible: bkill -s signals the programs, too."""


def _settings(job: BatchJob) -> LsfSettings:
    assert isinstance(job.settings, LsfSettings)  # `LsfDialect.settings` made them
    return job.settings


def _waiting(rows: dict[tuple[str, int], Row]) -> list[str]:
    """Names of the jobs and tasks that wait: of whole arrays where none of their tasks runs."""
    started = {number for (number, _), row in rows.items() if row.standing != "waits"}
    waiting = [key for key, row in rows.items() if row.standing == "waits"]
    arrays = {number for number, _ in waiting if number not in started}
    tasks = [f"{number}[{index + 1}]" for number, index in waiting if number in started]
    return [*sorted(arrays, key=int), *tasks]


def _records(arguments: list[str], variables: Variables) -> list[dict[str, Any]]:
    """Records of bjobs; none of jobs that it has forgotten.

    Raises:
        SchedulerSilent: Nobody knows.
    """
    try:
        output = printed(["bjobs", "-a", "-json", *arguments], variables, _TITLE)
    except SchedulerSilent as error:
        if "is not found" not in str(error):
            raise
        output = printed(["bjobs", "-a", "-json", *arguments], variables, _TITLE, may_refuse=True)
    try:
        begin = output.index("{")
        records: list[dict[str, Any]] = json.loads(output[begin:], strict=False)["RECORDS"]
    except (ValueError, KeyError, TypeError) as error:
        if not output.strip():
            return []
        raise SchedulerSilent(f"bjobs printed {shown(output)}: expected JSON") from error
    return [record for record in records if "ERROR" not in record]


def _reason(text: str) -> str:
    """A reason in one line, without what people need not read."""
    return shown(text).removesuffix(";").strip()
