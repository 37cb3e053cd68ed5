"""Prints the scores that torchmetrics gives: ``python -m ... PIXELS.npz CLASSES``, as JSON.

A process of its own, for which PYTHONPATH has Debian's PyTorch.
"""

import json
import sys

import numpy as np
import torch
from torchmetrics.functional.classification import (
    binary_calibration_error,
    multiclass_accuracy,
    multiclass_confusion_matrix,
    multiclass_jaccard_index,
    multiclass_precision,
    multiclass_recall,
)

from training.validation.metrics.calibration import BINS

pixels, size = np.load(sys.argv[1]), int(sys.argv[2])
truth, prediction = (torch.from_numpy(pixels[name]) for name in ("truth", "prediction"))
# In float32 its sums over a million pixels lose the fourth digit.
confidence = torch.from_numpy(pixels["confidence"]).double()
pair = {"preds": prediction, "target": truth, "num_classes": size}
occurring = torch.bincount(truth, minlength=size) > 0
iou = multiclass_jaccard_index(**pair, average="none")
scores = {
    "confusion_matrix": multiclass_confusion_matrix(**pair),
    "iou": iou,
    "miou": iou[occurring].mean(),
    "recall": multiclass_recall(**pair, average="none"),
    "precision": multiclass_precision(**pair, average="none"),
    "pixel_accuracy": multiclass_accuracy(**pair, average="micro"),
    "ece": binary_calibration_error(confidence, (truth == prediction).long(), n_bins=BINS),
}
sys.stdout.write(json.dumps({name: score.tolist() for name, score in scores.items()}))
