"""3D boxes of a frame (label3D JSON): objects per class, the nearest one, how hidden they are."""

import json
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from catalog.errors import BadFile
from ingest.extractors.base import CataloguedFrame, Extractor, SourceFiles
from ingest.labels.other_content import not_json

CLASSES: dict[str, str] = {
    "Car": "n_car",
    "Truck": "n_truck",
    "Pedestrian": "n_pedestrian",
    "Cyclist": "n_cyclist",
    "Bicycle": "n_bicycle",
    "Bus": "n_bus",
    "VanSUV": "n_van_suv",
    "UtilityVehicle": "n_utility_vehicle",
    "Trailer": "n_trailer",
    "CaravanTransporter": "n_caravan_transporter",
    "MotorBiker": "n_motor_biker",
    "Motorcycle": "n_motorcycle",
    "Animal": "n_animal",
    "EmergencyVehicle": "n_emergency_vehicle",
}
"""A2D2's classes of boxes and the tag that counts each; any other counts as n_other_object."""

OTHER = "n_other_object"


class Boxes(Extractor):
    """Objects per class and in all (n_objects); nearest_object_m; the boxes' worst marks.

    nearest_object_m is the distance [m] from the origin of the coordinates that the boxes are
    given in to the nearest point of the nearest box. occlusion_max and truncation_max are the
    largest of the boxes' values as the file has them. A frame without boxes has zero objects and
    no distance.

    Source: A2D2's tutorial, 3D bounding boxes; axis and rot_angle are an axis-angle rotation.
    """

    family: ClassVar[str] = "boxes"
    columns: ClassVar[Mapping[str, str]] = {
        "n_objects": "INTEGER",
        **dict.fromkeys(CLASSES.values(), "INTEGER"),
        OTHER: "INTEGER",
        "nearest_object_m": "DOUBLE",
        "occlusion_max": "DOUBLE",
        "truncation_max": "DOUBLE",
    }
    reads: ClassVar[str] = "{stamp}_label3D_{camera}_{number:09}.json"

    def extract(self, source: SourceFiles, frame: CataloguedFrame) -> Mapping[str, object]:
        """Tags of the frame's boxes; see Extractor."""
        boxes = read_boxes(source.read(frame.file))
        try:
            by_class = Counter(CLASSES.get(str(box["class"]), OTHER) for box in boxes)
            distances = [distance_to(box) for box in boxes]
            hidden = {
                f"{mark}_max": max((float(box[mark]) for box in boxes if mark in box), default=None)
                for mark in ("occlusion", "truncation")
            }
        except (KeyError, TypeError, ValueError) as error:
            kind = type(error).__name__
            raise BadFile(f"a box lacks a number or has a wrong one: {kind}: {error}") from error
        counts = {tag: by_class[tag] for tag in (*CLASSES.values(), OTHER)}
        return {
            "n_objects": len(boxes),
            **counts,
            "nearest_object_m": min(distances, default=None),
            **hidden,
        }


def read_boxes(content: bytes) -> list[Mapping[str, Any]]:
    """The boxes of a label3D file.

    Raises:
        BadFile: It is not JSON, or not an object of boxes.
    """
    try:
        parsed = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadFile(f"is {not_json(content, error)}") from error
    if not isinstance(parsed, dict) or not all(isinstance(box, dict) for box in parsed.values()):
        raise BadFile('expected an object of boxes, {"box_0": {"class": "Car", ...}, ...}')
    return list(parsed.values())


def rotation(axis: npt.ArrayLike, angle: float) -> npt.NDArray[np.float64]:
    """The (3, 3) matrix that turns by an angle [rad] about an axis (Rodrigues' formula)."""
    x, y, z = np.asarray(axis, dtype=np.float64) / np.linalg.norm(np.asarray(axis))
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    turned: npt.NDArray[np.float64] = (
        np.eye(3) + math.sin(angle) * cross + (1 - math.cos(angle)) * (cross @ cross)
    )
    return turned


def distance_to(box: Mapping[str, Any]) -> float:
    """Distance [m] from the origin to the nearest point of a box; 0 inside it."""
    center = np.asarray(box["center"], dtype=np.float64)
    size = np.asarray(box["size"], dtype=np.float64)
    turn = rotation(box["axis"], float(box["rot_angle"]))
    origin = turn.T @ -center
    outside = np.maximum(np.abs(origin) - size / 2, 0.0)
    return float(np.linalg.norm(outside))
