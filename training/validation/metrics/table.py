"""All metrics of a validation. Add one by a file beside this, and a line here."""

from collections.abc import Mapping

from training.validation.metrics.boundary import BoundaryIou
from training.validation.metrics.calibration import Calibration
from training.validation.metrics.confusion import Confusion
from training.validation.metrics.frame_share import Disagreement, Entropy, Margin
from training.validation.metrics.metric import Metric
from training.validation.metrics.object_sizes import ObjectSizes

METRICS: Mapping[str, type[Metric]] = {
    "scores": Confusion,
    "boundary_iou": BoundaryIou,
    "calibration": Calibration,
    "entropy": Entropy,
    "margins": Margin,
    "disagreement": Disagreement,
    "object_sizes": ObjectSizes,
}
"""By their names in a shard's file and in report.json."""
