"""The stage of a training that decodes its frames before it begins."""

from catalog.errors import InvalidInput
from pipeline.jobs.job_input import JobInput
from pipeline.jobs.request import PYTHON, Stage
from pipeline.jobs.train_settings import TrainSettings
from pipeline.runs.run_length import run_length
from pipeline.runs.size import Size
from pipeline.runs.training_input import USUAL_SIZE, pays


def to_be_prepared(frames: JobInput, split: str, settings: TrainSettings) -> bool:
    """Return whether a training has its frames prepared first: where it was asked to, or it pays.

    Args:
        frames: What it reads.
        split: Of these.
        settings: Of the training.

    Raises:
        InvalidInput: It was asked to, and they are neither staged nor in folders of this machine.
    """
    if settings.prepare is False:
        return False
    header = frames.whole.header
    if not header.staged and not frames.is_in_place:
        if settings.prepare:
            name = f"{header.name}@{header.version}"
            raise InvalidInput(
                f"prepare: goes with frames that are staged or lie in folders of this machine, and "
                f"{name} does not, or is read without staging; stage it first (framesift stage "
                f"{name}), or leave it out"
            )
        return False
    split_frames = len(frames.whole.split(split))
    if settings.prepare or not split_frames:
        return bool(settings.prepare)
    workers = settings.workers
    length = run_length(
        split_frames, workers, settings.batch_size, settings.max_steps, settings.epochs
    )
    return pays(
        dataset_frames=len(frames.whole),
        split_frames=split_frames,
        examples=length.examples,
        workers=workers,
        size=_size(settings),
    )


def preparing_stage(frames: JobInput, job: str, user: str, settings: TrainSettings) -> Stage:
    """The stage; the job goes on where it fails.

    Args:
        frames: A manifest in a cache.
        job: Name of the job.
        user: Whose job it is; empty where that does not matter.
        settings: Of the training.
    """
    command = (
        # -P: a folder "pipeline" where the user happens to stand is not ours.
        PYTHON, "-P", "-m", "pipeline.prepared.before_training",
        str(frames.manifest), str(_size(settings)), "--job", job, "--user", user,
    )  # fmt: skip
    return Stage("prepare", (command,), optional=True, uses_gpus=False)


def _size(settings: TrainSettings) -> Size:
    return Size(
        settings.height or USUAL_SIZE.height_px,
        settings.width or USUAL_SIZE.width_px,
    )
