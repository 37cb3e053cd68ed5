"""Formats of annotations by their names."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ingest.conversion.annotations import Annotations
from ingest.conversion.formats.cityscapes import Cityscapes
from ingest.conversion.formats.cvat import Cvat
from ingest.conversion.formats.labelme import Labelme
from ingest.conversion.formats.numbered import Coco, Panoptic, RleJson
from ingest.conversion.formats.scalabel import Scalabel

FORMATS: Mapping[str, Callable[[Sequence[Path], Path], Annotations]] = {
    "coco": lambda sources, _: Coco(sources),
    "coco-panoptic": lambda sources, _: Panoptic(sources),
    "cityscapes-polygons": lambda sources, _: Cityscapes(sources),
    "cvat": Cvat,
    "labelme": Labelme,
    "scalabel": lambda sources, _: Scalabel(sources),
    "rle-json": lambda sources, _: RleJson(sources),
}
"""What opens annotations of each format: their files, and the folder of the images."""
