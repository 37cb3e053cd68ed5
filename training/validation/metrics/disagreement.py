"""Disagreement under test-time augmentation: pixels that get another class in a changed image.

The image is mirrored, put through the model, and what comes back mirrored again. Where the two
predictions differ the model has no reason to be believed, also where nobody has labelled anything.
Only where it was asked for (`--augment-test mirror`): each frame goes through the model twice.

Source: Ayhan and Berens, "Test-time Data Augmentation for Estimation of Heteroscedastic Aleatoric
Uncertainty in Deep Neural Networks", MIDL 2018.
"""

from training.validation.metrics.frame_share import FrameShare
from training.validation.metrics.metric import ScoredFrame


class Disagreement(FrameShare):
    """Frames and the share of their pixels that changed."""

    @staticmethod
    def share(frame: ScoredFrame) -> float | None:
        """The score of a frame, 0 to 1; None where the option is off."""
        return frame.disagreement
