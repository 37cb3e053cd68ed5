"""Frames that a server chose."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from framesift.datasets import Dataset
from framesift.frames import Frame
from framesift.notebook import frames_html
from framesift.optional import imported
from framesift.tables import data_frame
from framesift.transport import Transport

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped,unused-ignore]
    import pyarrow as pa


@dataclass(frozen=True, repr=False)
class Selection:
    """Frames that a server chose.

    Attributes:
        question: What was asked, as the server understood it.
        snapshot: The catalog snapshot it was asked of.
        sentence: The question in English.
        sql: The question in Db2's SQL, over metaocean_view.
        note: What of the question SQL cannot say; empty where that is nothing.
        class_pixels: Pixels of each class in all frames.
        frames: In order; class tags hold pixels.
    """

    question: Mapping[str, Any]
    snapshot: int
    sentence: str
    sql: str
    note: str
    class_pixels: Mapping[str, int]
    frames: Sequence[Frame]
    _transport: Transport

    @classmethod
    def of(cls, body: Mapping[str, Any], transport: Transport) -> "Selection":
        """The selection of a server's answer."""
        return cls(
            question=body["question"],
            snapshot=body["snapshot"],
            sentence=body["sentence"],
            sql=body["sql"],
            note=body["note"],
            class_pixels=body["class_pixels"],
            frames=[Frame(frame, transport) for frame in body["frames"]],
            _transport=transport,
        )

    def __repr__(self) -> str:
        """Size, snapshot and what was asked."""
        return f"<Selection: {len(self):,} frames, snapshot {self.snapshot}: {self.sentence}>"

    def __len__(self) -> int:
        """Number of frames."""
        return len(self.frames)

    def __iter__(self) -> Iterator[Frame]:
        """The frames, in order."""
        return iter(self.frames)

    def __getitem__(self, place: int) -> Frame:
        """The frame at a place, from 0."""
        return self.frames[place]

    def save(self, name: str, *, split: str | None = None, **how: Any) -> Dataset:
        """Have the server save these frames as a dataset; the dataset.

        Args:
            name: The dataset's name.
            split: Such as "train=0.8,validation=0.2"; undivided when None.
            **how: More of `Datasets.create`: split_by, seed, allow_leakage...

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        body = {"name": name, "question": self.question, "split": split, **how}
        answer = self._transport.json(
            "POST", "/v1/datasets", body, creates=True, asked={"at": self.snapshot}
        )
        return Dataset(answer, self._transport)

    def to_arrow(self) -> "pa.Table":
        """The frames as a pyarrow.Table.

        Raises:
            MissingPackage: There is no pyarrow.
        """
        return imported("pyarrow").Table.from_pylist([dict(frame) for frame in self.frames])

    def to_pandas(self) -> "pd.DataFrame":
        """The frames as a pandas.DataFrame; integers stay integers, where some are missing, too.

        Raises:
            MissingPackage: There is no pyarrow, or no pandas.
        """
        return data_frame(self.to_arrow())

    def _repr_html_(self) -> str:
        facts = [f"{len(self):,} frames", f"snapshot {self.snapshot}"]
        return frames_html(self.sentence, facts, self.frames, self.sql)
