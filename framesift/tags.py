"""Named values on frames."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from framesift.http.json_text import json_text
from framesift.http.pages import paged
from framesift.http.transport import Transport
from framesift.jobs import Job, start

_MEDIA_TYPES = {".parquet": "application/vnd.apache.parquet", ".csv": "text/csv"}


class Tags:
    """The server's tags."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        """The server; nothing is asked."""
        return f"<Tags of {self._transport.url}>"

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """Every tag."""
        return self.list()

    def list(self, *, at: int | None = None) -> Iterator[Mapping[str, Any]]:
        """Every tag with its family, type, kind and allowed values.

        Args:
            at: The catalog snapshot to ask; the newest when None.

        Raises:
            FramesiftServerError: The server does not answer.
        """
        return paged(self._transport, "/v1/tags", "tags", at=at)

    def get(self, tag: str) -> Mapping[str, Any]:
        """A tag.

        Raises:
            NotFound: There is none of that name.
        """
        return self._transport.json("GET", f"/v1/tags/{quote(tag, safe='')}")

    def add(
        self,
        name: str,
        type: str = "text",  # noqa: A002
        *,
        kind: str | None = None,
        values: Sequence[str] = (),
        family: str | None = None,
    ) -> Mapping[str, Any]:
        """Add a tag; `import_values` then gives it values.

        Args:
            name: Lower-case letters, digits, "_" and "-".
            type: "text", "bigint", "double"..., see docs/catalog.md.
            kind: "Open" by default, "Restricted", or "Characteristics".
            values: Of a Restricted tag.
            family: Tag family to put it in; the users' own by default.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        definition = {"tag": name, "type": type, "kind": kind, "values": list(values)}
        request = {**definition, "family": family}
        body = {key: value for key, value in request.items() if value is not None}
        return self._transport.json("POST", "/v1/tags", body, creates=True)

    def group(self, tag: str, classes: Sequence[str]) -> Mapping[str, Any]:
        """Define a class group, a tag that is the sum of the pixels of classes; the tag.

        ``client.tags.group("vehicle", ["car", "truck", "bus"])``

        Args:
            tag: Lower-case letters, digits, "_" and "-".
            classes: Their tags or names.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        request = {"tag": tag, "classes": list(classes)}
        return self._transport.json("POST", "/v1/tags/groups", request, creates=True)

    def groups(self, *, at: int | None = None) -> Iterator[Mapping[str, Any]]:
        """Class groups: tags whose ``classes`` are not empty.

        Args:
            at: The catalog snapshot to ask; the newest when None.

        Raises:
            FramesiftServerError: The server does not answer.
        """
        return (tag for tag in self.list(at=at) if tag["classes"])

    def set(self, tag: str, kind: str, *, values: Sequence[str] = ()) -> Mapping[str, Any]:
        """Give a tag another kind, or other values; the tag.

        Args:
            kind: "Open", "Restricted" or "Characteristics".
            values: All values of a Restricted tag.

        Raises:
            NotFound: There is none of that name.
            InvalidQuestion: Files have values that it would refuse.
        """
        request = {"kind": kind, "values": list(values)}
        return self._transport.json("PATCH", f"/v1/tags/{quote(tag, safe='')}", request)

    def remove(self, tag: str) -> Mapping[str, Any]:
        """Remove a tag with its values; older snapshots keep it.

        Raises:
            NotFound: There is none of that name.
            FramesiftServerError: The labels or an extractor give it, or the server does not answer.
        """
        return self._transport.json("DELETE", f"/v1/tags/{quote(tag, safe='')}")

    def values(self, tag: str, *, at: int | None = None, limit: int = 100) -> Mapping[str, Any]:
        """The most frequent values of a tag: ``values`` (``value``, ``files``) and ``distinct``.

        Args:
            at: The catalog snapshot to ask; the newest when None.
            limit: At most so many, and at most 1,000.

        Raises:
            NotFound: There is none of that name.
        """
        query = {"at": at, "limit": limit}
        return self._transport.json("GET", f"/v1/tags/{quote(tag, safe='')}/values", query=query)

    def families(self) -> Iterator[Mapping[str, Any]]:
        """Tags that were written together, by an extractor or an import, with their types.

        Raises:
            FramesiftServerError: The server does not answer.
        """
        return paged(self._transport, "/v1/families", "families")

    def drop(self, family: str) -> Mapping[str, Any]:
        """Remove a family with its tags and values; older snapshots keep it.

        Raises:
            NotFound: There is none of that name.
        """
        return self._transport.json("DELETE", f"/v1/families/{quote(family, safe='')}")

    def extract(
        self,
        source: str,
        *extractors: str,
        full: bool = False,
        workers: int = 2,
        errors: bool = False,
    ) -> Job:
        """Read tags from the files of a source's frames, only new and changed ones; the job.

        Args:
            *extractors: Of those that are installed on the server, such as "image" and "bus".
            full: Also read frames that were read before.
            workers: Frames read at once.
            errors: Read nothing: the job's result lists the files that were bad.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        request = {
            "source": source, "extractors": extractors, "full": full, "workers": workers,
            "errors": errors,
        }  # fmt: skip
        return start(self._transport, "/v1/extractions", request)

    def import_scores(self, job: str) -> Mapping[str, Any]:
        """Make a validation's scores of frames tags of its model, which questions then name.

        ``client.select(model="demo-train", where="confusion(pedestrian, bicycle) >= 5000")``

        Args:
            job: The validation, which is done.

        Raises:
            NotFound: There is no such job.
            InvalidQuestion: It is no validation that is done.
        """
        return self._transport.json("POST", "/v1/tags/scores", {"job": job})

    def import_map(
        self, features: Iterable[Any], family: str, within_m: float, **options: str | None
    ) -> Mapping[str, Any]:
        """Tag the frames that were taken near features of a map.

        Args:
            features: Geometries in WGS 84 longitude and latitude, of shapely or any other that
                has `__geo_interface__`, or as GeoJSON has them.
            family: Tag family to write.
            within_m: How near counts [m].
            **options: tag, latitude, longitude, as `framesift tags import-map`.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        drawn = (getattr(each, "__geo_interface__", each) for each in features)
        shapes = [{"type": "Feature", "properties": {}, "geometry": each} for each in drawn]
        parameters = {name: value for name, value in options.items() if value is not None}
        answer = self._transport.send(
            "POST",
            "/v1/tags/map",
            content=json_text({"type": "FeatureCollection", "features": shapes}),
            headers={"Content-Type": "application/geo+json"},
            params={"family": family, "within": within_m, **parameters},
        )
        counts: Mapping[str, Any] = answer.json()
        return counts

    def mark(self, fkeys: Sequence[str], values: Mapping[str, str]) -> Mapping[str, Any]:
        """Give frames values of tags, in one commit; ``imported`` counts the frames.

        Args:
            values: Value of each tag, as text; "" takes the tag from the frames. A new tag becomes
                one of the users' own.

        Raises:
            NotFound: One of the frames is none; nothing was marked.
            FramesiftServerError: The labels or an extractor give a tag, the token may not write, or
                the server does not answer.
        """
        request = {"fkeys": list(fkeys), "values": dict(values)}
        return self._transport.json("POST", "/v1/tags/marks", request)

    def import_values(self, file: str | Path, family: str, **options: Any) -> Mapping[str, Any]:
        """Give frames tags from a table: a row per file, a column per tag.

        Args:
            file: CSV or Parquet, told apart by its suffix.
            family: Tag family to write.
            **options: key, key_column, prefix, datasource, and type, a list of "TAG=TYPE", as
                `framesift tags import`.

        Raises:
            ValueError: The file is neither.
            OSError: It cannot be read.
            FramesiftServerError: The server refuses, or does not answer.
        """
        path = Path(file)
        media_type = _MEDIA_TYPES.get(path.suffix.lower())
        if media_type is None:
            raise ValueError(f"{path}: expected a file .csv or .parquet")
        parameters = {name: value for name, value in options.items() if value is not None}
        answer = self._transport.send(
            "POST",
            "/v1/tags/values",
            content=path.read_bytes(),
            headers={"Content-Type": media_type},
            params={"family": family, **parameters},
        )
        counts: Mapping[str, Any] = answer.json()
        return counts
