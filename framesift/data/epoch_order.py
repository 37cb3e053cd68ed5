"""Order of an epoch: Framesift's training, its staging and a PyTorch sampler share it. A leaf."""

import numpy as np
import numpy.typing as npt


def epoch_order(frames: int, seed: int, epoch: int) -> npt.NDArray[np.int64]:
    """(frames,) int64: every row of the split once, in the order of one epoch of the whole job."""
    return np.random.default_rng([seed, epoch]).permutation(frames)
