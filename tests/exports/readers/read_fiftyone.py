"""Opens an export with FiftyOne and its database; writes what it reads as JSON.

python read_fiftyone.py FOLDER CACHE
"""

import contextlib
import json
import os
import sys

import numpy as np

os.environ["FIFTYONE_DATABASE_DIR"] = os.environ["HOME"] = sys.argv[2]
with contextlib.redirect_stdout(sys.stderr):
    import fiftyone

    dataset = fiftyone.Dataset.from_dir(
        sys.argv[1], dataset_type=fiftyone.types.FiftyOneDataset, progress=False
    )
targets = dataset.mask_targets["ground_truth"]
read: dict[str, list[dict[str, object]]] = {}
for sample in dataset:
    mask = sample.ground_truth.get_mask().astype(int)
    colours, counts = np.unique(
        mask[..., 0] << 16 | mask[..., 1] << 8 | mask[..., 2], return_counts=True
    )
    of_class: dict[str, int] = {}
    for colour, count in zip(colours.tolist(), counts.tolist(), strict=True):
        name = targets.get(f"#{colour:06x}", "unknown")
        of_class[name] = of_class.get(name, 0) + count
    (split,) = sample.tags
    read.setdefault(split, []).append(
        {"fkey": sample.fkey, "classes": of_class, "car": sample["car"]}
    )
sys.stdout.write(json.dumps(read))
