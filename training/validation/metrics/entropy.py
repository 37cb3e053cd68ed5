"""Uncertainty: the entropy of a prediction, over frames.

Of a frame it is the mean over the pixels of the network's size, as a share of the largest possible:
0 where the model is sure of every pixel, 1 where it knows nothing.

Source: Shannon, "A Mathematical Theory of Communication", 1948, section 6.
"""

from training.validation.metrics.frame_share import FrameShare
from training.validation.metrics.metric import ScoredFrame


class Entropy(FrameShare):
    """Frames and their entropy."""

    @staticmethod
    def share(frame: ScoredFrame) -> float:
        """The score of a frame, 0 to 1."""
        return frame.uncertainty
