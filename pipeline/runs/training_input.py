"""The default input of a training, and whether preparing its frames first pays.

A leaf for both sides: training takes its usual settings from here, and the submission of one the
rule. Standard library only.
"""

from pipeline.runs.size import Size

USUAL_SIZE = Size(height_px=152, width_px=240)
SIZE_STEP_PX = 8
"""The network halves its input three times, so both sides are divisible by this."""
KEPT_MIB = 1024
"""Decoded frames that a worker keeps in memory [MiB]; beyond it they are decoded again."""

LEAST_SAVED = 200
"""Frames: 8 s of decoding at A2D2's size; to start what prepares takes 3 s of CPU."""


def pays(
    *, dataset_frames: int, split_frames: int, examples: int, workers: int, size: Size
) -> bool:
    """Return whether a training decodes so much that preparing the dataset first is less work.

    A form is of the whole dataset, so it costs one decoding of each of its frames. Without one each
    worker decodes what it reads: every example again, or, where the split fits its memory, each
    frame once. Workers share no memory. So a run of few steps, one epoch, or a small split on one
    worker prepares nothing.

    Args:
        dataset_frames: Of all splits.
        split_frames: Of the split that is read.
        examples: Readings of a frame, by all workers together.

    >>> of = {"dataset_frames": 40_000, "split_frames": 33_004, "workers": 2, "size": USUAL_SIZE}
    >>> [pays(**of, examples=epochs * 33_004) for epochs in (1, 2)]
    [False, True]
    """
    decoded = examples
    if split_frames * 4 * size.height_px * size.width_px <= KEPT_MIB << 20:
        decoded = min(examples, workers * split_frames)
    return decoded - dataset_frames >= LEAST_SAVED
