"""Opens an export by mmengine's configs, and its files as mmsegmentation pairs them.

python read_mmseg.py FOLDER CACHE
"""

import json
import sys
from pathlib import Path

import numpy as np
from mmengine.config import Config
from PIL import Image

folder = Path(sys.argv[1])
child = Path(sys.argv[2], "child.py")
child.parent.mkdir(parents=True, exist_ok=True)
child.write_text(f"_base_ = {str(folder / 'dataset.py')!r}\n")
config = Config.fromfile(child)
read: dict[str, list[dict[str, object]]] = {}
for split in ("train", "validation"):
    value = config[f"{split}_dataset"]
    read[split] = []
    for part in value["datasets"] if value["type"] == "ConcatDataset" else [value]:
        root = Path(part["data_root"])
        for name in (root / part["ann_file"]).read_text().split():
            image = root / part["data_prefix"]["img_path"] / (name + part["img_suffix"])
            mask = root / part["data_prefix"]["seg_map_path"] / (name + part["seg_map_suffix"])
            pixels = np.bincount(np.asarray(Image.open(mask)).ravel(), minlength=256)
            read[split].append({"image": list(Image.open(image).size), "pixels": pixels.tolist()})
sys.stdout.write(json.dumps(read))
