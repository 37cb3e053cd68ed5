"""Margin: by how much a model prefers the best class to the second best, over frames.

Of a frame it is the mean, over the pixels of the network's size, of the distance between the two
largest probabilities: 0 where the model is undecided everywhere, 1 where it is sure.

Source: Scheffer et al., "Active Hidden Markov Models for Information Extraction", IDA 2001.
"""

from training.validation.metrics.frame_share import FrameShare
from training.validation.metrics.metric import ScoredFrame


class Margin(FrameShare):
    """Frames and their margins."""

    @staticmethod
    def share(frame: ScoredFrame) -> float:
        """The score of a frame, 0 to 1."""
        return frame.margin
