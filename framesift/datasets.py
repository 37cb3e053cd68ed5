"""Saved, versioned selections."""

import io
import json
import os
import uuid
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from framesift.forms.gallery import Gallery, Size
from framesift.forms.notebook import facts_of_dataset, frames_html
from framesift.forms.optional import imported
from framesift.forms.tables import data_frame
from framesift.frames import FramePages, paged_frames
from framesift.http.pages import paged
from framesift.http.transport import Transport
from framesift.jobs import Job, Jobs, reference, start
from framesift.question import question_of
from framesift.record import Record
from framesift.statistics import Statistics, asked_frames

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped,unused-ignore]
    import pyarrow as pa

ExportFormat = Literal["csv", "parquet", "xlsx", "jsonl", "files", "fiftyone"]

_DRAWN = 12


class Dataset(Record):
    """A version of a dataset, without its frames."""

    def __repr__(self) -> str:
        """Name, version and size."""
        return f"<Dataset {reference(self)}: {self['frames']:,} frames>"

    @property
    def name(self) -> str:
        """Its name."""
        return str(self["name"])

    @property
    def version(self) -> int:
        """Its version, from 1."""
        return int(self["version"])

    @property
    def id(self) -> str:
        """Digest of what it holds: equal ids, equal datasets."""
        return str(self["id"])

    @property
    def frame_count(self) -> int:
        """Number of its frames."""
        return int(self["frames"])

    @property
    def splits(self) -> Mapping[str, int]:
        """Frames of each split."""
        splits: Mapping[str, int] = self["splits"]
        return splits

    @property
    def owner(self) -> str:
        """The user who made it; "" where the server does not know or tell."""
        return str(self.get("owner", ""))

    def frames(
        self, split: str | None = None, *, columns: Sequence[str] | None = None, page: int = 1_000
    ) -> FramePages:
        """Its frames by fkey, fetched a page at a time as they are wanted.

        Args:
            split: Only those of this split.
            columns: Columns and tags of each; the server's choice when None.
            page: Frames that are fetched at once.

        Raises:
            FramesiftServerError: There is no such split, or the server does not answer.
        """
        population = asked_frames(None, self, split, None)
        return paged_frames(self._transport, population, columns, page)

    def show(
        self,
        limit: int = 24,
        *,
        split: str | None = None,
        over: str | None = "label",
        size: Size = "medium",
        captions: Sequence[str] = (),
    ) -> Gallery:
        """Its first frames by fkey as a gallery for a notebook, fetched when that draws it.

        Args:
            limit: Most frames of it, 1 to 200.
            split: Only those of this split.
            over: As of `Selection.show`.
            size: As of `Selection.show`.
            captions: Columns and tags whose values stand below each picture.

        Raises:
            ValueError: An argument has no meaning.
        """
        columns = list(dict.fromkeys(("camera", "scene", "frame_number", *captions)))
        title = f"dataset {self.name} version {self.version}"
        count = self["frames"] if split is None else self["splits"].get(split)
        return Gallery(
            title if split is None else f"{title}, split {split}", count,
            self.frames(split, columns=columns, page=max(1, min(limit, 1_000))),
            limit=limit, over=over, size=size, captions=captions, url=self._transport.url,
        )  # fmt: skip

    def divide(self, split: str, **how: Any) -> "Dataset":
        """Divide its frames again, as a new version; arguments as of `Datasets.divide`."""
        return self._all.divide(reference(self), split, **how)

    def extend(
        self,
        *demands: Mapping[str, Any],
        split: str | None = None,
        at: int | None = None,
        **how: Any,
    ) -> "Dataset":
        """Close a gap, as a new version; arguments as of `Datasets.extend`."""
        return self._all.extend(reference(self), *demands, split=split, at=at, **how)

    def reduce(self, frames: int, **how: Any) -> "Dataset":
        """Keep its most informative frames, as a new version; arguments as of `Datasets.reduce`."""
        return self._all.reduce(reference(self), frames, **how)

    def rebuild(self) -> "Dataset":
        """Make its manifest again: see `Datasets.rebuild`."""
        return self._all.rebuild(reference(self))

    def rename(self, name: str) -> "Dataset":
        """Give it, with all its versions, another name; it as it is then."""
        return self._all.change(reference(self), rename=name)

    def describe(self, description: str) -> "Dataset":
        """Keep what is to be said of it; it as it is then."""
        return self._all.change(reference(self), description=description)

    def remove(self) -> None:
        """Remove this version; see `Datasets.remove`."""
        self._all.remove(reference(self))

    def diff(self, other: "str | Dataset", *, limit: int | None = None) -> Mapping[str, Any]:
        """Changes from this to the other; arguments as of `Datasets.diff`."""
        return self._all.diff(reference(self), other, limit=limit)

    def gaps(
        self,
        *,
        at_least: int = 1,
        split: str | None = None,
        scenes: bool = False,
        at: int | None = None,
    ) -> Mapping[str, Any]:
        """Gaps of it in comparison with the catalog; arguments as of `Statistics.gaps`."""
        return Statistics(self._transport).gaps(
            self, split=split, at_least=at_least, scenes=scenes, at=at
        )

    def classes(self, split: str | None = None) -> Sequence[Mapping[str, Any]]:
        """Frames and pixel share of every class.

        Raises:
            FramesiftServerError: There is no such split, or the server does not answer.
        """
        report = Statistics(self._transport).classes(dataset=self, split=split)
        classes: Sequence[Mapping[str, Any]] = report["classes"]
        return classes

    def export(
        self,
        path: str | Path,
        format: ExportFormat = "csv",  # noqa: A002
        *,
        split: str | None = None,
        with_labels: bool = False,
    ) -> Path:
        """Write it for other programs; the path. Arguments as of `Datasets.export`."""
        return self._all.export(reference(self), path, format, split=split, with_labels=with_labels)

    def exported(
        self,
        format: ExportFormat = "csv",  # noqa: A002
        *,
        split: str | None = None,
        with_labels: bool = False,
    ) -> Iterator[bytes]:
        """The text that `export` writes, as it comes; arguments as of `Datasets.exported`."""
        return self._all.exported(reference(self), format, split=split, with_labels=with_labels)

    def to_arrow(self, split: str | None = None) -> "pa.Table":
        """Its frames as a pyarrow.Table: files, sizes, pixels of each class.

        Args:
            split: Only those of this split.

        Raises:
            MissingPackage: There is no pyarrow.
            FramesiftServerError: There is no such split, or the server does not answer.
        """
        pq = imported("pyarrow.parquet")
        return pq.read_table(io.BytesIO(b"".join(self.exported("parquet", split=split))))

    def to_pandas(self, split: str | None = None) -> "pd.DataFrame":
        """The same as a pandas.DataFrame; integers stay integers, where some are missing, too.

        Args:
            split: Only those of this split.

        Raises:
            MissingPackage: There is no pyarrow, or no pandas.
            FramesiftServerError: There is no such split, or the server does not answer.
        """
        return data_frame(self.to_arrow(split))

    def stage(
        self,
        *,
        workers: int | None = None,
        verify: bool = False,
        prepare: str | None = None,
        to: Sequence[str] = (),
    ) -> Job:
        """Fetch its images and labels into the server's cache; the job.

        Args:
            workers: Files fetched at once; 4 by default.
            verify: Read what is in the cache again, and fetch what is damaged.
            prepare: Also decode its frames once, at this size: WIDTHxHEIGHT, or "full" for their
                own.
            to: AFM filesets to bring them into in place of the cache, each
                [SOURCE=]afm:FILESYSTEM/FILESET.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        request: dict[str, Any] = {"dataset": reference(self), "verify": verify}
        if workers is not None:
            request["workers"] = workers
        if prepare is not None:
            request["prepare"] = prepare
        if to:
            request["to"] = [*to]
        return start(self._transport, "/v1/stagings", request)

    def train(self, **options: Any) -> Job:
        """Train on it; the job. Options as of `Jobs.train`."""
        return Jobs(self._transport).train(self, **options)

    def validate(self, model: str | Job | None = None, **options: Any) -> Job:
        """Validate a model on it, or predictions; the job. Options as of `Jobs.validate`."""
        return Jobs(self._transport).validate(model, self, **options)

    def run(self, command: str | Sequence[str], **options: Any) -> Job:
        """Run a program of yours on it; the job. Options as of `Jobs.run`."""
        return Jobs(self._transport).run(self, command, **options)

    @property
    def _all(self) -> "Datasets":
        return Datasets(self._transport)

    def _repr_html_(self) -> str:
        frames = self.frames(columns=("camera", "scene", "frame_number"), page=_DRAWN)
        title = f"dataset {self.name} version {self.version}"
        return frames_html(title, facts_of_dataset(self), frames, "")


class Datasets:
    """The server's datasets."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        """The server; nothing is asked."""
        return f"<Datasets of {self._transport.url}>"

    def __iter__(self) -> Iterator[Dataset]:
        """Every version of every dataset."""
        return self.list()

    def list(self) -> Iterator[Dataset]:
        """Every version of every dataset, fetched as they are wanted.

        Raises:
            FramesiftServerError: The server does not answer.
        """
        bodies = paged(self._transport, "/v1/datasets", "datasets")
        return (Dataset(body, self._transport) for body in bodies)

    def get(self, name: str) -> Dataset:
        """A dataset's newest version, or NAME@VERSION.

        Raises:
            NotFound: There is none of that name.
        """
        return Dataset(self._transport.json("GET", _path(name)), self._transport)

    def create(
        self,
        name: str,
        *,
        question: Mapping[str, Any] | None = None,
        method: Mapping[str, Any] | None = None,
        split: str | None = None,
        split_by: str | None = None,
        split_given: bool = False,
        stratify_splits: Sequence[str] = (),
        disjoint_from: Sequence[str] = (),
        allow_leakage: bool = False,
        min_gap_s: float | None = None,
        seed: int = 0,
        at: int | None = None,
        **conditions: Any,
    ) -> Dataset:
        """Choose frames and save them as a dataset's new version.

        Args:
            name: What to call it; the server puts the name of a user limited to collections before
                it.
            question: As a selection has it.
            method: How to choose among the frames that answer: ``{"method": "sample", ...}``,
                "match", "cover" or "uncertain", see docs/datasets.md.
            split: Shares, such as "train=0.8,validation=0.2"; undivided when None.
            split_by: What stays on one side: "scene" by default, "camera", "frame", or a tag.
            split_given: Keep the splits of the data set's makers, in place of ``split``.
            stratify_splits: What every split has its share of: "camera", "car:0,1000".
            disjoint_from: Datasets with which it shares no scene, drive or moment.
            allow_leakage: Sides may share scenes, drives and moments.
            min_gap_s: Frames nearer in time stay on one side [s]; the server's choice when None.
            seed: Decides between equally good sets, and what a sample holds.
            at: The catalog snapshot to choose from; the newest when None.
            **conditions: Of `Client.select`, in place of a question.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
            TypeError: Both a question and conditions, or a keyword that there is not.
        """
        if question is not None and conditions:
            raise TypeError("question: it takes the place of conditions; leave one of them out")
        body: dict[str, Any] = {
            "name": name,
            "question": question if question is not None else question_of(seed=seed, **conditions),
            "method": method,
            "split": split,
            "stratify_splits": list(stratify_splits),
            "disjoint_from": list(disjoint_from),
            "allow_leakage": allow_leakage,
            "seed": seed,
        }
        if split_by is not None:
            body["split_by"] = split_by
        if split_given:
            body["split_given"] = True
        if min_gap_s is not None:
            body["min_gap_s"] = min_gap_s
        return self._dataset_of("/v1/datasets", body, at)

    def divide(self, name: str, split: str, **how: Any) -> Dataset:
        """Divide a dataset's frames into other splits, as a new version of it.

        Args:
            name: NAME, or NAME@VERSION.
            split: Shares, such as "train=0.8,validation=0.2".
            **how: split_by, stratify_splits, min_gap_s, allow_leakage, seed: see docs/datasets.md.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        return self._dataset_of(f"{_path(name)}/splits", {"split": split, **how}, None)

    def extend(
        self,
        name: str,
        *demands: Mapping[str, Any],
        split: str | None = None,
        at: int | None = None,
        **how: Any,
    ) -> Dataset:
        """Add as few frames as close a gap, as a new version; ["report"]["unmet"] stays open.

        Args:
            name: NAME, or NAME@VERSION.
            *demands: What is missing; `demand` makes them.
            split: Which split lacks them; the only one by default.
            at: The catalog snapshot to choose from; the newest when None.
            **how: min_gap_s, allow_leakage, seed: see docs/datasets.md.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        body = {"demands": [*demands], "split": split, **how}
        return self._dataset_of(f"{_path(name)}/extensions", body, at)

    def reduce(self, name: str, frames: int, **how: Any) -> Dataset:
        """Keep the most informative frames of a training split, as a new version.

        Args:
            name: NAME, or NAME@VERSION.
            frames: How many the split keeps.
            **how: model (a training job: what its newest validation finds weak is kept first),
                split, seed.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        return self._dataset_of(f"{_path(name)}/reductions", {"frames": frames, **how}, None)

    def rebuild(self, name: str) -> Dataset:
        """Make a lost or damaged manifest again; the server proves it equal by its id.

        Args:
            name: NAME, or NAME@VERSION.

        Raises:
            FramesiftServerError: It cannot be made equal, or the server does not answer.
        """
        return Dataset(self._transport.json("POST", f"{_path(name)}/rebuild"), self._transport)

    def change(
        self, name: str, *, rename: str | None = None, description: str | None = None
    ) -> Dataset:
        """Rename a dataset with all its versions, or describe a version; how it stands then.

        Args:
            name: NAME, or NAME@VERSION.
            rename: Its other name.
            description: What is to be said of the version; "" for nothing.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        change = {"name": rename, "description": description}
        body = {field: value for field, value in change.items() if value is not None}
        return Dataset(self._transport.json("PATCH", _path(name), body), self._transport)

    def remove(self, name: str) -> Mapping[str, Any]:
        """Remove every version of NAME, or NAME@VERSION alone; which ones, as ["removed"].

        Raises:
            FramesiftServerError: A job reads it, or the server does not answer.
        """
        removed: Mapping[str, Any] = self._transport.json("DELETE", _path(name))
        return removed

    def diff(
        self, name: str, other: str | Dataset, *, limit: int | None = None
    ) -> Mapping[str, Any]:
        """Changes from one to the other: frames, splits, distributions.

        Args:
            name: NAME, or NAME@VERSION.
            other: NAME, NAME@VERSION or a Dataset.
            limit: Frames listed of each kind; the server's choice when None.

        Raises:
            FramesiftServerError: There is no such dataset, or the server does not answer.
        """
        parameters = {"other": reference(other), "limit": limit}
        return self._transport.json("GET", f"{_path(name)}/diff", query=parameters)

    def diff_text(
        self, name: str, other: str | Dataset, *, limit: int | None = None
    ) -> Generator[str]:
        """The text of `diff`, one JSON document, as it comes; arguments as of `diff`.

        Raises:
            FramesiftServerError: As `diff`, or the server breaks off.
        """
        parameters = {"other": reference(other)}
        if limit is not None:
            parameters["limit"] = str(limit)
        with self._transport.streaming("GET", f"{_path(name)}/diff", params=parameters) as answer:
            yield from answer.iter_text()

    def export(
        self,
        name: str,
        path: str | Path,
        format: ExportFormat = "csv",  # noqa: A002
        *,
        split: str | None = None,
        with_labels: bool = False,
    ) -> Path:
        """Write a dataset for other programs, to a file; as "fiftyone", to a folder; the path.

        Args:
            name: NAME, or NAME@VERSION.
            format: "files" is a path or URI per line.
            with_labels: With "files", the label's path after a tab.

        Raises:
            FramesiftServerError: There is no such dataset or split, or the server does not answer.
            OSError: It cannot be written.
        """
        path = Path(path)
        with closing(self.exported(name, format, split=split, with_labels=with_labels)) as chunks:
            if format == "fiftyone":
                _write_fiftyone(path, json.loads(b"".join(chunks)))
            else:
                with _aside(path) as temporary, temporary.open("xb") as file:
                    file.writelines(chunks)
        return path

    def exported(
        self,
        name: str,
        format: ExportFormat = "csv",  # noqa: A002
        *,
        split: str | None = None,
        with_labels: bool = False,
    ) -> Generator[bytes]:
        """The text that `export` writes, as it comes; "fiftyone" is one JSON document.

        Args:
            name: NAME, or NAME@VERSION.
            format: "files" is a path or URI per line.
            with_labels: With "files", the label's path after a tab.

        Raises:
            FramesiftServerError: There is no such dataset or split, or the server does not answer.
        """
        parameters = {"format": format, "with_labels": "true" if with_labels else "false"}
        if split is not None:
            parameters["split"] = split
        path = f"{_path(name)}/export"
        with self._transport.streaming("GET", path, params=parameters) as answer:
            yield from answer.iter_bytes()

    def _dataset_of(self, path: str, body: Mapping[str, Any], at: int | None) -> Dataset:
        answer = self._transport.json("POST", path, body, creates=True, query={"at": at})
        return Dataset(answer, self._transport)


def _path(name: str) -> str:
    return f"/v1/datasets/{quote(name, safe='@')}"


def demand(
    frames: int, *, per: Sequence[str] = (), name: str = "", **conditions: Any
) -> dict[str, Any]:
    """So many frames that fulfil conditions, for `Dataset.extend` and the method "cover".

    Args:
        frames: How many.
        per: So many for every value of these tags.
        name: What to call it in the report.
        **conditions: Of `Client.select`.
    """
    question = question_of(**conditions)
    return {"question": question, "frames": frames, "per": list(per), "name": name}


def _write_fiftyone(folder: Path, body: Mapping[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with _aside(folder / "metadata.json") as metadata, _aside(folder / "samples.json") as samples:
        for file, content in (
            (metadata, body["metadata"]),
            (samples, {"samples": body["samples"]}),
        ):
            file.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


@contextmanager
def _aside(path: Path) -> Iterator[Path]:
    """A file beside ``path`` that takes its name at the end of the block; else it is gone.

    With its name it is on the disk.
    """
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
    try:
        yield temporary
        with temporary.open("r+b") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
        if os.name == "posix":  # elsewhere a folder cannot be opened
            folder = os.open(path.parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
    finally:
        temporary.unlink(missing_ok=True)
