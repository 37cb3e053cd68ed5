"""Statistics of a camera image: light, contrast, sharpness, and the time of day."""

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ingest.extractors.base import CataloguedFrame, Extractor, SourceFiles
from ingest.images.camera_image import open_image

LONGER_SIDE = 640
"""Images are averaged down by the smallest whole factor that brings their longer side to this or
less [pixels]: 1920x1208 by 3, to 640x403."""


class Image(Extractor):
    """image_brightness, image_contrast, image_sharpness; recorded_hour and time_of_day.

    All on grey values (ITU-R 601 luma, 0 to 255) of the reduced image, see LONGER_SIDE:
    image_brightness is their mean divided by 255 (0 black, 1 white), image_contrast their standard
    deviation divided by 255, image_sharpness the variance of their 4-neighbour Laplacian (in
    squared grey values; low where an image is blurred or dark, so compare within one camera).

    recorded_hour (0 to 23) and time_of_day ("night" before 6 and from 21, "morning" to 12,
    "afternoon" to 18, "evening" to 21) are those of the recording's start in local time, as A2D2
    names its scenes; scenes last minutes.
    """

    family: ClassVar[str] = "image"
    columns: ClassVar[Mapping[str, str]] = {
        "image_brightness": "DOUBLE",
        "image_contrast": "DOUBLE",
        "image_sharpness": "DOUBLE",
        "recorded_hour": "INTEGER",
        "time_of_day": "VARCHAR",
    }
    reads: ClassVar[str] = "image"

    def extract(self, source: SourceFiles, frame: CataloguedFrame) -> Mapping[str, object]:
        """Tags of the frame's camera image; see Extractor."""
        grey = reduced_grey(source.read(frame.file))
        hour = hour_of(frame.scene)
        return {
            "image_brightness": float(grey.mean()) / 255,
            "image_contrast": float(grey.std()) / 255,
            "image_sharpness": sharpness(grey),
            "recorded_hour": hour,
            "time_of_day": time_of_day(hour) if hour is not None else None,
        }


def reduced_grey(content: bytes) -> npt.NDArray[np.float32]:
    """Grey values (H, W) of the image, averaged down to at most LONGER_SIDE pixels."""
    image = open_image(content)
    factor = max(1, -(-max(image.size) // LONGER_SIDE))
    return np.asarray(image.convert("L").reduce(factor), dtype=np.float32)


def sharpness(grey: npt.NDArray[np.float32]) -> float | None:
    """Variance of the 4-neighbour Laplacian over inner pixels; None without inner pixels."""
    if min(grey.shape) < 3:
        return None
    inner = grey[1:-1, 1:-1]
    around = grey[:-2, 1:-1] + grey[2:, 1:-1] + grey[1:-1, :-2] + grey[1:-1, 2:]
    return float((around - 4 * inner).var(dtype=np.float64))


def hour_of(scene: str) -> int | None:
    """Hour (0 to 23, local time) of a scene folder "YYYYMMDD_hhmmss"; None where it is no time."""
    try:
        return datetime.strptime(scene, "%Y%m%d_%H%M%S").hour  # noqa: DTZ007 (local, as named)
    except ValueError:
        return None


def time_of_day(hour: int) -> str:
    """The part of the day that an hour (0 to 23) is in."""
    if hour < 6 or hour >= 21:
        return "night"
    if hour < 12:
        return "morning"
    return "afternoon" if hour < 18 else "evening"
