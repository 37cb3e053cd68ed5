"""Opens an export with WebDataset; writes what it reads as JSON.

python read_webdataset.py FOLDER CACHE
"""

import io
import json
import sys
from pathlib import Path

import numpy as np
import webdataset
from PIL import Image

folder = Path(sys.argv[1])
read: dict[str, list[dict[str, object]]] = {}
for split, shards in json.loads((folder / "dataset.json").read_text())["splits"].items():
    urls = [str(folder / shard) for shard in shards]
    # "pil" makes RGB of every image: a mask's samples are read by themselves.
    ids = webdataset.handle_extension(
        "mask.png", lambda data: np.asarray(Image.open(io.BytesIO(data)))
    )
    read[split] = [
        {
            "fkey": sample["json"]["fkey"],
            "image": list((sample.get("png") or sample.get("jpg")).size),
            "pixels": np.bincount(sample["mask.png"].ravel(), minlength=256).tolist(),
        }
        for sample in webdataset.WebDataset(urls, shardshuffle=False).decode(ids, "pil")
    ]
sys.stdout.write(json.dumps(read))
