"""The stage of a training that decodes its frames before it begins."""

from catalog.errors import InvalidInput
from pipeline.jobs.job_input import JobInput
from pipeline.jobs.request import PYTHON, Stage
from pipeline.runs.orders import Training
from pipeline.runs.run_length import run_length
from pipeline.runs.size import Size
from pipeline.runs.training_input import USUAL_SIZE, pays


def to_be_prepared(frames: JobInput, split: str, order: Training) -> bool:
    """Return whether a training has its frames prepared first: where it was asked to, or it pays.

    Args:
        frames: What it reads.
        split: Of these.
        order: Of the training.

    Raises:
        InvalidInput: It was asked to, and they are neither staged nor in folders of this machine.
    """
    if order.prepare is False:
        return False
    header = frames.whole.header
    if not header.staged and not frames.is_in_place:
        if order.prepare:
            name = f"{header.name}@{header.version}"
            raise InvalidInput(
                f"prepare: goes with frames that are staged or lie in folders of this machine, and "
                f"{name} does not, or is read without staging; stage it first (framesift stage "
                f"{name}), or leave it out"
            )
        return False
    split_frames = len(frames.whole.split(split))
    if order.prepare or not split_frames:
        return bool(order.prepare)
    workers = order.workers
    length = run_length(split_frames, workers, order.batch_size, order.max_steps, order.epochs)
    return pays(
        dataset_frames=len(frames.whole),
        split_frames=split_frames,
        examples=length.examples,
        workers=workers,
        size=_size(order),
    )


def preparing_stage(frames: JobInput, job: str, user: str, order: Training) -> Stage:
    """The stage; the job goes on where it fails.

    Args:
        frames: A manifest in a cache.
        job: Name of the job.
        user: Whose job it is; empty where that does not matter.
        order: Of the training.
    """
    command = (
        # -P: a folder "pipeline" where the user happens to stand is not ours.
        PYTHON, "-P", "-m", "pipeline.prepared.before_training",
        str(frames.manifest), str(_size(order)), "--job", job, "--user", user,
    )  # fmt: skip
    return Stage("prepare", (command,), optional=True, uses_gpus=False)


def _size(order: Training) -> Size:
    return Size(
        order.height or USUAL_SIZE.height_px,
        order.width or USUAL_SIZE.width_px,
    )
