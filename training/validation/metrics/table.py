"""All metrics of a validation. Add one by a file beside this, and a line here."""

from collections.abc import Mapping

from training.validation.metrics.boundary import BoundaryIou
from training.validation.metrics.calibration import Calibration
from training.validation.metrics.confusion import Confusion
from training.validation.metrics.frame_share import Disagreement, Entropy, Margin
from training.validation.metrics.metric import DrawnMetric, Metric
from training.validation.metrics.object_sizes import ObjectSizes

DRAWN: Mapping[str, type[DrawnMetric]] = {
    "boundary_iou": BoundaryIou,
    "calibration": Calibration,
    "entropy": Entropy,
    "margins": Margin,
    "disagreement": Disagreement,
    "object_sizes": ObjectSizes,
}
"""Those that a shard adds up by scene, too, so that their scores have intervals."""

METRICS: Mapping[str, type[Metric]] = {"scores": Confusion, **DRAWN}
"""By their names in a shard's file and in report.json.

Of the confusion matrix each frame's cells are kept, which scenes add up.
"""
