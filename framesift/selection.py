"""Frames that a server chose."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from framesift.datasets import Dataset, Datasets
from framesift.forms.gallery import Gallery, Size
from framesift.forms.notebook import frames_html
from framesift.forms.optional import imported
from framesift.forms.tables import data_frame
from framesift.frames import Frame
from framesift.http.transport import Transport
from framesift.question import Asked, data_of

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped,unused-ignore]
    import pyarrow as pa


_TEXTS = (
    "fkey", "platform", "cluster", "datasource", "path", "filename", "scene", "camera",
)  # fmt: skip
COLUMN_TYPES = {
    **dict.fromkeys(_TEXTS, "string"),
    **dict.fromkeys(("frame_number", "image_width", "image_height"), "int32"),
    **dict.fromkeys(("image_file", "label_file"), "string"),
    **dict.fromkeys(("image_size", "label_size"), "int64"),
}
"""Columns of each frame before its classes, in order, and names of the catalog's Arrow types."""

_FULFILS = "none fulfils the question"
"""Said where the server does not say more."""


@dataclass(frozen=True, repr=False)
class Selection:
    """Frames that a server chose."""

    question: Mapping[str, Any]
    """What was asked, as the server understood it."""
    snapshot: int
    """The catalog snapshot it was asked of."""
    sentence: str
    """The question in English."""
    sql: str
    """The question in Db2's SQL, over metaocean_view."""
    note: str
    """What of the question SQL cannot say; empty where that is nothing."""
    class_pixels: Mapping[str, int]
    """Pixels of each class in all frames."""
    frames: Sequence[Frame]
    """In order; class tags hold pixels."""
    why_empty: str
    """Why there are no frames; empty where there are some."""
    left_out: str
    """How many frames ``!=`` leaves out as they have no value; empty where that is none."""
    document: Mapping[str, Any]
    """The answer as the server sent it."""
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
            why_empty="" if body["frames"] else body.get("why_empty") or _FULFILS,
            left_out=body.get("left_out") or "",
            document=body,
            _transport=transport,
        )

    def __repr__(self) -> str:
        """Size, snapshot and what was asked."""
        return f"<Selection: {len(self):,} frames, snapshot {self.snapshot}: {self.sentence}>"

    def __len__(self) -> int:
        """Number of frames."""
        return len(self.frames)

    @property
    def classes(self) -> Sequence[str]:
        """The class tags, in class order."""
        return list(self.class_pixels)

    def __iter__(self) -> Iterator[Frame]:
        """The frames, in order."""
        return iter(self.frames)

    def __getitem__(self, index: int) -> Frame:
        """The frame at an index, from 0."""
        return self.frames[index]

    def save(self, name: str, *, split: str | None = None, **how: Any) -> Dataset:
        """Have the server save these frames as a dataset; the dataset.

        Args:
            name: The dataset's name.
            split: Such as "train=0.8,validation=0.2"; undivided when None.
            **how: More of `Datasets.create`: split_by, allow_leakage..., and seed, else the
                question's.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        how = {"seed": self.question.get("seed", 0), "split": split, **how}
        datasets = Datasets(self._transport)
        return datasets.create(name, question=self.question, at=self.snapshot, **how)

    def show(
        self,
        limit: int = 24,
        *,
        over: str | None = "label",
        size: Size = "medium",
        captions: Sequence[str] = (),
    ) -> Gallery:
        """The first frames as a gallery for a notebook; pictures are fetched when that draws it.

        Args:
            limit: Most frames of it, 1 to 200.
            over: What lies over each picture: "label", "prediction:MODEL", "errors:MODEL", or None.
            size: "small", "medium" or "large": 160, 240 or 480 pixels.
            captions: Columns and tags whose values stand below each picture: of those that the
                frames have.

        Raises:
            ValueError: An argument has no meaning, or the frames lack a caption's column.
        """
        return Gallery(
            self.sentence, len(self), self.frames, limit=limit, over=over, size=size,
            captions=captions, known=[*self.frames[0]] if self.frames else None,
            url=self._transport.url,
        )  # fmt: skip

    def to_arrow(self) -> "pa.Table":
        """The frames as a pyarrow.Table.

        Raises:
            MissingPackage: There is no pyarrow.
        """
        pa = imported("pyarrow")
        if self.frames:
            return pa.Table.from_pylist([dict(frame) for frame in self.frames])
        # No value tells a type: JSON's integers are of 64 bits, as those of frames are.
        types = COLUMN_TYPES | dict.fromkeys(self.classes, "int64")
        kinds = {name: "string" if kind == "string" else "int64" for name, kind in types.items()}
        fields = [(name, pa.type_for_alias(kind)) for name, kind in kinds.items()]
        return pa.schema(fields).empty_table()

    def to_pandas(self) -> "pd.DataFrame":
        """The frames as a pandas.DataFrame; integers stay integers, where some are missing, too.

        Raises:
            MissingPackage: There is no pyarrow, or no pandas.
        """
        return data_frame(self.to_arrow())

    def _repr_html_(self) -> str:
        facts = [f"{len(self):,} frames", f"snapshot {self.snapshot}"]
        return frames_html(self.sentence, facts, self.frames, self.sql)


class Selections:
    """Questions to the server's catalog."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        """The server; nothing is asked."""
        return f"<Selections of {self._transport.url}>"

    def ask(
        self, question: Asked, *, at: int | None = None, columns: Sequence[str] = ()
    ) -> Selection:
        """The frames that answer a question given as data, as a selection has it.

        Args:
            question: See docs/selections.md.
            at: The catalog snapshot to ask; the question's or the newest when None.
            columns: Tags and columns of each frame beside its files and classes.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        query = {"at": at, "columns": ",".join(columns) or None}
        body = self._transport.json("POST", "/v1/selections", data_of(question), query=query)
        return Selection.of(body, self._transport)

    def describe(self, question: Asked, *, at: int | None = None) -> Mapping[str, Any]:
        """Describe a question: a sentence, SQL, and what SQL cannot say; it is not asked.

        Args:
            question: As of `ask`.
            at: As of `ask`.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        path = "/v1/selections/describe"
        return self._transport.json("POST", path, data_of(question), query={"at": at})
