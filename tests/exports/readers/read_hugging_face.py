"""Opens an export with Hugging Face's datasets; writes what it reads as JSON.

python read_hugging_face.py FOLDER CACHE
"""

import json
import sys

import datasets
import numpy as np

dataset = datasets.load_dataset(sys.argv[1], cache_dir=sys.argv[2])
read = {
    split: [
        {
            "fkey": row["fkey"],
            "image": list(row["image"].size),
            "pixels": np.bincount(np.asarray(row["label"]).ravel(), minlength=256).tolist(),
        }
        for row in rows
    ]
    for split, rows in dataset.items()
}
sys.stdout.write(json.dumps(read))
