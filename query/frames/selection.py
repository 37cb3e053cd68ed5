"""A selection: ordered frames, the question that chose them, the snapshot it was asked of."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from query.question.question import Question

if TYPE_CHECKING:  # a command that has no such answer does without them
    import pyarrow as pa

    from query.run.kept_rows import KeptRows


@dataclass(frozen=True)
class Selection:
    """The answer to a question."""

    question: Question
    """What was asked, with the snapshot that it was asked of."""
    snapshot: int
    frames: "pa.Table"
    """One row per frame, in order: fkey, platform, cluster, datasource, path, filename, scene,
    camera, frame_number, image_width, image_height [pixels], image_file, label_file (keys below
    the source's root), image_size, label_size [bytes], and one column per class tag [pixels],
    then what was asked for beside these.
    """
    classes: tuple[str, ...]
    """The class tags, in class order."""

    def __len__(self) -> int:
        """Number of frames."""
        return int(self.frames.num_rows)


@dataclass(frozen=True)
class SelectedRows:
    """A selection whose frames are read batch by batch."""

    question: Question
    """What was asked, with the snapshot that it was asked of."""
    snapshot: int
    rows: "KeptRows"
    """The frames, as Selection has them."""
    classes: tuple[str, ...]
    """The class tags, in class order."""

    def __len__(self) -> int:
        """Number of frames."""
        return len(self.rows)

    @property
    def selection(self) -> Selection:
        """All frames in memory."""
        return Selection(self.question, self.snapshot, self.rows.table(), self.classes)

    def class_pixels(self) -> dict[str, int]:
        """Pixels of each class in all frames."""
        import pyarrow.compute as pc

        pixels = dict.fromkeys(self.classes, 0)
        for batch in self.rows.batches(self.classes) if self.classes else ():
            for tag in self.classes:
                pixels[tag] += pc.sum(batch.column(tag)).as_py() or 0
        return pixels
