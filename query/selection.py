"""A selection: ordered frames, the question that chose them, the snapshot it was asked of."""

from dataclasses import dataclass

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from query.label_range import LabelRange


class Question(BaseModel):
    """What frames are wanted; every condition must hold.

    Only labelled frames are chosen: camera images whose label has been counted.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    ranges: tuple[LabelRange, ...] = ()
    where: str | None = Field(
        default=None,
        description="A WHERE body in SQL over metaocean's columns and every tag.",
        examples=["car >= 10000 and scene like '2018%'"],
    )
    cameras: tuple[str, ...] = Field(default=(), examples=[("front_center",)])
    scenes: tuple[str, ...] = Field(default=(), examples=[("20180807_145028",)])
    order: tuple[str, ...] = Field(
        default=(), description="Tags or columns, each with ' desc' for falling order."
    )
    limit: int | None = Field(default=None, ge=1, lt=2**63, description="At most so many frames.")
    sample: int | None = Field(
        default=None, ge=1, lt=2**63, description="So many of them at random."
    )
    seed: int = Field(default=0, ge=0, description="Decides what a sample holds.")


@dataclass(frozen=True)
class Selection:
    """The answer to a question.

    Attributes:
        question: What was asked.
        snapshot: The catalog snapshot it was asked of.
        frames: One row per frame, in order: fkey, platform, cluster, datasource, path, filename,
            scene, camera, frame_number, image_width, image_height [pixels], image_file,
            label_file (keys below the source's root), image_size, label_size [bytes], and one
            column per class tag [pixels].
        classes: The class tags, in class order.
    """

    question: Question
    snapshot: int
    frames: pa.Table
    classes: tuple[str, ...]

    def __len__(self) -> int:
        """Number of frames."""
        return int(self.frames.num_rows)

    def class_pixels(self) -> dict[str, int]:
        """Pixels of each class in all frames."""
        return {
            tag: sum(v for v in self.frames[tag].to_pylist() if v is not None)
            for tag in self.classes
        }
