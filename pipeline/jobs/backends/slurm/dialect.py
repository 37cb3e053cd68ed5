"""Slurm's words: sbatch, squeue, scontrol, scancel, sacct and srun."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from framesift_start import start
from pipeline.jobs.backends.batch.commands import SchedulerSilent, Variables, printed, shown
from pipeline.jobs.backends.batch.dialect import Predecessor, Row, Standing
from pipeline.jobs.backends.batch.job import BatchJob
from pipeline.jobs.backends.batch.script import HOSTS
from pipeline.jobs.backends.batch.settings import BatchSettings
from pipeline.jobs.backends.slurm.settings import SlurmSettings, slurm_settings
from pipeline.jobs.request import Stage
from pipeline.jobs.resources import Resources

_TITLE = "Slurm"
_ID = re.compile(r"\d+")
_WAITS = frozenset(
    {
        "PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESIZING",
        "RESV_DEL_HOLD", "SPECIAL_EXIT",
    }
)  # fmt: skip
_RUNS = frozenset({"RUNNING", "COMPLETING", "SIGNALING", "STAGE_OUT", "SUSPENDED", "STOPPED"})
"""These and those of _WAITS are states that a job leaves. Source: squeue(1), job state codes."""


class SlurmDialect:
    """The words of Slurm."""

    name = "slurm"
    title = _TITLE
    configured: tuple[str, ...] = ("SLURM_CONF",)
    words = (Path(__file__).parent / "words.sh").read_text(encoding="utf-8")
    passes_variables = True
    warns = True

    def settings(self, file: Path | None, resources: Resources, user: str) -> SlurmSettings:
        """The table [slurm]."""
        return slurm_settings(file, resources, user)

    def check(self, resources: Resources, settings: BatchSettings) -> None:
        """Slurm has words for all of them."""

    def submission(
        self, job: BatchJob, stage: Stage, predecessor: Predecessor | None
    ) -> tuple[str, ...]:
        """A command line of sbatch."""
        request, resources, settings = job.request, job.request.resources, _settings(job)
        per_node, gpus = job.ranks_per_node(stage), job.gpus(stage)
        flags: dict[str, object] = {
            "job-name": job.name,
            "chdir": job.paths.folder,
            "output": "/dev/null",
            "partition": settings.partition,
            "account": settings.account,
            "comment": f"framesift user {request.user}" if request.user else "",
            "qos": settings.qos,
            "reservation": settings.reservation,
            "ntasks": stage.ranks,
            "ntasks-per-node": per_node if stage.ranks > 1 else None,
            "cpus-per-task": resources.cores,
            "mem": f"{resources.memory_mb}M" if resources.memory_mb else None,
            "gres": f"gpu:{gpus * per_node}" if gpus else None,
            "nodelist": resources.nodes,
            "constraint": resources.constraint,
            "time": resources.wall_minutes,
            "signal": f"B:USR1@{settings.checkpoint_seconds}" if resources.wall_minutes else None,
        }
        listed = [f"--{flag}={value}" for flag, value in flags.items() if value not in ("", None)]
        count = len(stage.commands)
        if count > 1:
            most = f"%{request.parallel}" if request.parallel < count else ""
            listed.append(f"--array=0-{count - 1}{most}")
        # On hold until its number is kept: what nobody knows of never begins.
        listed += ["--hold", "--requeue", "--kill-on-invalid-dep=yes"]
        if predecessor is not None:
            condition = "afterany" if predecessor.may_fail else "afterok"
            listed.append(f"--dependency={condition}:{predecessor.number}")
        return ("sbatch", "--parsable", *listed)

    def signals_ranks(self, job: BatchJob, stage: Stage) -> bool:
        """Those of a step."""
        return stage.ranks > 1 and _starter(job, stage) == "srun"

    def container(self, job: BatchJob, stage: Stage) -> list[str]:
        """Apptainer's words, or a step of one task where srun starts images."""
        if _settings(job).container == "pyxis" and job.image:
            return ["srun", "--ntasks=1", "--input=none", *_of_pyxis(job)]
        return job.container(stage)

    def launcher(self, job: BatchJob, stage: Stage) -> list[str]:
        """Words of srun, mpirun or horovodrun."""
        ranks, settings = stage.ranks, _settings(job)
        container = self.container(job, stage)
        if _starter(job, stage) == "mpirun":
            return job.mpirun(stage)
        if _starter(job, stage) == "horovodrun":
            return ["horovodrun", "-np", str(ranks), "-H", HOSTS, "--gloo", *container]
        per_node, nodes = job.ranks_per_node(stage), job.nodes(stage)
        inside_out = settings.container == "inside-out" and bool(container)
        srun = ["srun", "--kill-on-bad-exit=1", "--input=none", "--distribution=block"]
        one_each = inside_out or stage.launcher == "torchrun"
        if one_each:
            srun += [f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1"]
            srun += [f"--cpus-per-task={per_node * job.cores}"]
        else:
            srun += [f"--ntasks={ranks}", f"--cpus-per-task={job.cores}"]
        if settings.container == "pyxis":  # options of srun's
            srun, container = [*srun, *_of_pyxis(job)], []
        starter = [job.python, *start("training.slurm_ranks"), job.inside(str(job.notes))]
        return [
            *srun,
            *container,
            *starter,
            str(ranks),
            job.ranks_of_task(stage) if one_each else "0",
        ]

    def submit(self, command: Sequence[str], script: str, variables: Variables) -> str:
        """The number that sbatch prints."""
        output = printed(command, variables, _TITLE, script).strip()
        number = output.partition(";")[0]
        if not _ID.fullmatch(number):
            raise SchedulerSilent(f"sbatch printed {shown(output)}, and no job number")
        return number

    def rows(self, numbers: Iterable[str], variables: Variables) -> dict[tuple[str, int], Row]:
        """What squeue lists; 0 is the index of a job that is no array."""
        unique = sorted(set(numbers), key=int)
        if not unique:
            return {}
        listed = ["squeue", "--noheader", "--array", "--states=all", "--format=%F|%K|%T|%r"]
        try:
            output = printed([*listed, f"--jobs={','.join(unique)}"], variables, _TITLE)
        except SchedulerSilent as error:
            if "Invalid job id" in str(error):  # of one that it has forgotten
                return {}
            raise
        known = {}
        for line in output.splitlines():
            number, index, state, reason = (*line.split("|", 3), "", "", "", "")[:4]
            if not _ID.fullmatch(number) or not re.fullmatch("[A-Z_]+", state):
                raise SchedulerSilent(
                    f"squeue printed {shown(line)}: expected JOB|INDEX|STATE|REASON"
                )
            row = Row(state, reason, _standing(state))
            known[number, int(index) if _ID.fullmatch(index) else 0] = row
        return known

    def numbers_of(self, name: str, variables: Variables) -> list[str]:
        """By squeue, too."""
        listed = ["squeue", "--noheader", "--states=all", "--format=%F", f"--name={name}"]
        output = printed(listed, variables, _TITLE)
        for line in output.split():
            if not _ID.fullmatch(line):
                raise SchedulerSilent(f"squeue printed {shown(line)}: expected a job number")
        return sorted(set(output.split()), key=int)

    def last_state(self, number: str, index: int, variables: Variables) -> str:
        """By sacct, as far as the cluster keeps accounts."""
        listed = ["sacct", "--noheader", "--parsable2", "--allocations", "--format=JobID,State"]
        try:
            output = printed([*listed, f"--jobs={number}"], variables, _TITLE)
        except SchedulerSilent:
            return ""
        pairs = (line.split("|") for line in output.splitlines())
        states = {
            pair[0]: pair[1].split()[0] for pair in pairs if len(pair) == 2 and pair[1].strip()
        }
        return states.get(f"{number}_{index}") or states.get(number, "")

    def release(self, numbers: Sequence[str], variables: Variables) -> None:
        """By scontrol."""
        printed(["scontrol", "release", ",".join(numbers)], variables, _TITLE)

    def withdraw(self, numbers: Sequence[str], variables: Variables) -> None:
        """By scancel, which knows a state."""
        _scancel(["--state=PENDING"], numbers, variables)

    def delete(self, numbers: Sequence[str], variables: Variables) -> None:
        """By scancel."""
        _scancel([], numbers, variables)

    def warn(self, numbers: Sequence[str], variables: Variables) -> None:
        """A signal to the scripts alone."""
        _scancel(["--signal=USR1", "--batch", "--state=RUNNING"], numbers, variables)


def _settings(job: BatchJob) -> SlurmSettings:
    assert isinstance(job.settings, SlurmSettings)  # `SlurmDialect.settings` made them
    return job.settings


def _starter(job: BatchJob, stage: Stage) -> str:
    """The program that starts ranks; Horovod's own starts only Horovod's programs."""
    return job.settings.launcher if stage.launcher == "horovod" else "srun"


def _of_pyxis(job: BatchJob) -> list[str]:
    """Options that NVIDIA's plugin pyxis adds to srun. Source: its README."""
    if not job.image:
        return []
    mounts = ",".join(f"{here}:{there}" for here, there in job.mounts().items())
    arguments = job.settings.container_arguments
    return [f"--container-image={job.image}", f"--container-mounts={mounts}", *arguments]


def _standing(state: str) -> Standing:
    if state in _WAITS:
        return "waits"
    return "runs" if state in _RUNS else "ended"


def _scancel(flags: Sequence[str], numbers: Iterable[str], variables: Variables) -> None:
    """scancel, for jobs that may have ended."""
    printed(["scancel", "--quiet", *flags, *numbers], variables, _TITLE, may_refuse=True)
