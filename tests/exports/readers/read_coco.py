"""Opens an export with pycocotools; writes what it reads as JSON.

python read_coco.py FOLDER CACHE
"""

import contextlib
import json
import sys
from pathlib import Path

import numpy as np
from PIL import Image
from pycocotools.coco import COCO

folder = Path(sys.argv[1])
read: dict[str, list[dict[str, object]]] = {}
for file in sorted((folder / "annotations").glob("*.json")):
    with contextlib.redirect_stdout(sys.stderr):
        coco = COCO(str(file))
    read[file.stem] = []
    for image in coco.loadImgs(sorted(coco.imgs)):
        pixels = np.zeros(256, int)
        for annotation in coco.loadAnns(coco.getAnnIds(imgIds=image["id"])):
            pixels[annotation["category_id"] - 1] = coco.annToMask(annotation).sum()
        pixels[255] = image["height"] * image["width"] - pixels.sum()
        size = Image.open(folder / "images" / image["file_name"]).size
        read[file.stem].append({"image": list(size), "pixels": pixels.tolist()})
sys.stdout.write(json.dumps(read))
