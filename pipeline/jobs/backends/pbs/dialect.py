"""PBS's words: qsub, qstat, qselect, qrls, qdel and pbs_tmrsh.

Source: OpenPBS 20 manual pages (qsub, qstat, qselect, qdel, qrls, qrerun, pbs_tmrsh). Tested with
stand-ins that go by them, not with a PBS.
"""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from catalog.errors import InvalidInput
from pipeline.jobs.backends.batch.commands import SchedulerSilent, Variables, printed, shown
from pipeline.jobs.backends.batch.dialect import Predecessor, Row, Standing
from pipeline.jobs.backends.batch.job import BatchJob
from pipeline.jobs.backends.batch.node_launch import node_launch
from pipeline.jobs.backends.batch.portions import portions
from pipeline.jobs.backends.batch.settings import BatchSettings
from pipeline.jobs.backends.pbs.settings import PbsSettings, pbs_settings
from pipeline.jobs.request import Stage
from pipeline.jobs.resources import Resources

_TITLE = "PBS"
_ID = re.compile(r"\d+(\[\])?(\.[\w.-]+)?")
_TASK = re.compile(r"(\d+)\[(\d+)\](.*)")
_MOST_ASKED = 200
"""Jobs that one command is asked about."""
_STANDINGS: dict[str, Standing] = {
    "Q": "waits", "H": "waits", "W": "waits", "T": "waits", "B": "runs", "R": "runs",
    "E": "runs", "S": "runs", "U": "runs", "F": "ended", "X": "ended", "M": "ended",
}  # fmt: skip
"""Meaning of states. Source: qstat(1B), job_state."""
_GONE = ("Unknown Job Id", "Job has finished", "Unknown queue")


class PbsDialect:
    """The words of PBS."""

    name = "pbs"
    title = _TITLE
    configured: tuple[str, ...] = ("PBS_CONF_FILE", "PBS_SERVER", "PBS_EXEC")
    words = (Path(__file__).parent / "words.sh").read_text(encoding="utf-8")
    passes_variables = False
    warns = False

    def settings(self, file: Path | None, resources: Resources, user: str) -> PbsSettings:
        """The table [pbs]."""
        return pbs_settings(file, resources, user)

    def check(self, resources: Resources, settings: BatchSettings) -> None:  # noqa: ARG002
        """Name as many hosts as the ranks need, if any."""
        hosts = _hosts(resources)
        per_node = resources.ranks_per_node or resources.ranks
        nodes = -(-resources.ranks // per_node)
        if hosts and len(hosts) < nodes:
            raise InvalidInput(
                f"nodes {resources.nodes}: {len(hosts)} hosts for {nodes} nodes; name as many, "
                "with ',' between them, or have more ranks on each"
            )

    def submission(
        self, job: BatchJob, stage: Stage, predecessor: Predecessor | None
    ) -> tuple[str, ...]:
        """A command line of qsub."""
        request, resources, settings = job.request, job.request.resources, _settings(job)
        count = len(stage.commands)
        most = f"%{request.parallel}" if request.parallel < count else ""
        placement = "scatter" if job.nodes(stage) > 1 else "pack"
        wall = resources.wall_minutes
        flags: list[tuple[str, object]] = [
            ("-N", job.name),
            ("-S", "/bin/bash"),
            ("-o", "/dev/null"),
            ("-e", "/dev/null"),
            ("-q", settings.queue),
            ("-A", settings.account),
            ("-l", f"select={_select(job, stage)}"),
            ("-l", f"place={placement}{':' if settings.place else ''}{settings.place}"),
            ("-l", f"walltime={wall // 60:02}:{wall % 60:02}:00" if wall else ""),
            ("-J", f"0-{count - 1}{most}" if count > 1 else ""),
            ("-r", "y"),
            ("-m", "n"),
        ]
        words = [word for flag, value in flags if value != "" for word in (flag, str(value))]
        if predecessor is not None:
            condition = "afterany" if predecessor.may_fail else "afterok"
            words += ["-W", f"depend={condition}:{predecessor.number}"]
        # On hold until its number is kept: what nobody knows of never begins.
        return ("qsub", *words, "-h")

    def signals_ranks(self, job: BatchJob, stage: Stage) -> bool:  # noqa: ARG002
        """It signals all processes of a job, the script's, too."""
        return False

    def container(self, job: BatchJob, stage: Stage) -> list[str]:
        """Apptainer's words."""
        return job.container(stage)

    def launcher(self, job: BatchJob, stage: Stage) -> list[str]:
        """Words of pbs_tmrsh or mpirun."""
        if stage.launcher == "horovod" and job.settings.launcher == "mpirun":
            return job.mpirun(stage)
        return node_launch(job, stage, "pbs_tmrsh")

    def submit(self, command: Sequence[str], script: str, variables: Variables) -> str:
        """The identifier that qsub prints."""
        output = printed(command, variables, _TITLE, script).strip()
        if not _ID.fullmatch(output):
            raise SchedulerSilent(f"qsub printed {shown(output)}, and no job identifier")
        return output

    def rows(self, numbers: Iterable[str], variables: Variables) -> dict[tuple[str, int], Row]:
        """What qstat lists, finished ones and the tasks of arrays, too."""
        known = {}
        for portion in portions(sorted(set(numbers)), _MOST_ASKED):
            command = ["qstat", "-x", "-t", "-f", "-F", "json", *portion]
            for name, record in _records(command, variables).items():
                state = str(record.get("job_state", ""))
                if state not in _STANDINGS:
                    raise SchedulerSilent(f"qstat says job_state {shown(state)} of {shown(name)}")
                task = _TASK.fullmatch(name)
                number, index = (f"{task[1]}[]{task[3]}", int(task[2])) if task else (name, 0)
                reason = str(record.get("comment", "")) or state
                known[number, index] = Row(_ended_how(record), shown(reason), _STANDINGS[state])
        return known

    def numbers_of(self, name: str, variables: Variables) -> list[str]:
        """By qselect."""
        words = printed(["qselect", "-x", "-N", name], variables, _TITLE).split()
        for word in words:
            if not _ID.fullmatch(word):
                raise SchedulerSilent(f"qselect printed {shown(word)}: expected a job identifier")
        return sorted(words, key=lambda word: int(re.split(r"\D", word)[0]))

    def last_state(self, number: str, index: int, variables: Variables) -> str:  # noqa: ARG002
        """PBS says no more than qstat, as far as its server keeps a history."""
        return ""

    def release(self, numbers: Sequence[str], variables: Variables) -> None:
        """By qrls, of the user's hold."""
        for portion in portions(numbers, _MOST_ASKED):
            printed(["qrls", "-h", "u", *portion], variables, _TITLE)

    def withdraw(self, numbers: Sequence[str], variables: Variables) -> None:
        """By qdel, for those that qstat calls waiting: it knows no states."""
        rows = self.rows(numbers, variables)
        started = {number for (number, _), row in rows.items() if row.standing != "waits"}
        waiting = [key for key, row in rows.items() if row.standing == "waits"]
        arrays = {number for number, _ in waiting if number not in started}
        tasks = [
            number.replace("[]", f"[{index}]") for number, index in waiting if number in started
        ]
        self.delete([*sorted(arrays), *tasks], variables)

    def delete(self, numbers: Sequence[str], variables: Variables) -> None:
        """By qdel."""
        for portion in portions(numbers, _MOST_ASKED):
            printed(["qdel", *portion], variables, _TITLE, may_refuse=True)

    def warn(self, numbers: Sequence[str], variables: Variables) -> None:
        """Not possible: qsig signals the programs, too."""


def _settings(job: BatchJob) -> PbsSettings:
    assert isinstance(job.settings, PbsSettings)  # `PbsDialect.settings` made them
    return job.settings


def _hosts(resources: Resources) -> list[str]:
    return [host for host in resources.nodes.split(",") if host]


def _select(job: BatchJob, stage: Stage) -> str:
    """The chunks of a stage, one on a node; the last may have fewer ranks."""
    resources, gpus = job.request.resources, job.gpus(stage)
    per_node, nodes = job.ranks_per_node(stage), job.nodes(stage)

    def chunk(ranks: int, host: str) -> str:
        words = [f"ncpus={ranks * job.cores}", f"mpiprocs={ranks}"]
        words += [f"ngpus={ranks * gpus}"] if gpus else []
        words += [f"mem={resources.memory_mb}mb"] if resources.memory_mb else []
        words += [resources.constraint] if resources.constraint else []
        return ":".join([*words, *([f"host={host}"] if host else [])])

    hosts = (_hosts(resources) or [""] * nodes)[:nodes]
    chunks = [
        chunk(min(per_node, stage.ranks - node * per_node), host) for node, host in enumerate(hosts)
    ]
    return "+".join(f"{chunks.count(one)}:{one}" for one in dict.fromkeys(chunks))


def _ended_how(record: dict[str, Any]) -> str:
    """The state of a job, for people, with how it ended."""
    code = record.get("Exit_status")
    return str(record["job_state"]) if code is None else f"exit status {code}"


def _records(command: list[str], variables: Variables) -> dict[str, dict[str, Any]]:
    """Jobs of qstat's by identifier; none of those that it has forgotten.

    Raises:
        SchedulerSilent: Nobody knows.
    """
    try:
        output = printed(command, variables, _TITLE)
    except SchedulerSilent as error:
        if not any(words in str(error) for words in _GONE):
            raise
        output = printed(command, variables, _TITLE, may_refuse=True)
    if not output.strip():
        return {}
    try:
        jobs: dict[str, dict[str, Any]] = json.loads(output, strict=False).get("Jobs", {})
    except (ValueError, AttributeError) as error:
        raise SchedulerSilent(f"qstat printed {shown(output)}: expected JSON") from error
    return jobs
