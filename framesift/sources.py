"""Places that hold a server's files, and the scans of them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from framesift.http.pages import paged
from framesift.http.transport import Transport
from framesift.jobs import Job, start
from framesift.record import Record


class Source(Record):
    """A place that holds files."""

    @property
    def name(self) -> str:
        """Its name."""
        return str(self["name"])

    def scan(
        self,
        *,
        full: bool = False,
        max_removed: float | None = None,
        check_images: bool = True,
        errors: bool = False,
    ) -> Job:
        """Catalog what is new or has changed; the job.

        Args:
            full: Count all labels again, changed or not.
            max_removed: Share of the source's catalogued files that may be removed at once (0 to
                1); where more are gone, none is, and the job fails. The server's default when None.
            check_images: Open each camera image to see that it is whole and fits its label.
            errors: Scan nothing: the job's result lists what is wrong with the files.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        request = {
            "source": self.name, "full": full, "check_images": check_images, "errors": errors
        }  # fmt: skip
        if max_removed is not None:
            request["max_removed"] = max_removed
        return start(self._transport, "/v1/scans", request)

    def check_labels(self, *, labels: int | None = None) -> Job:
        """Look at its labels, once it was scanned; the job, whose result says what is odd.

        Args:
            labels: Read so many, spread over all; all when None.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        request = {"source": self.name, **({} if labels is None else {"labels": labels})}
        return start(self._transport, "/v1/label-checks", request)

    def scans(self) -> Iterator[Mapping[str, Any]]:
        """Its scans, newest first, fetched as they are wanted.

        Raises:
            FramesiftServerError: The server does not answer.
        """
        return paged(self._transport, "/v1/scans", "scans", source=self.name)

    def contents(self) -> Mapping[str, Any]:
        """Counts of what hangs on it: see `Sources.contents`."""
        return Sources(self._transport).contents(self.name)

    def place(self, uri: str, *, differing: bool = False) -> Mapping[str, Any]:
        """Re-point it where its files were moved; arguments as of `Sources.change`."""
        return Sources(self._transport).change(self.name, uri=uri, differing=differing)

    def set(
        self,
        *,
        exclude: Sequence[str] | None = None,
        part_of: str | None = None,
        layout: str | Mapping[str, Any] | None = None,
        mount: str | None = None,
        max_mb_per_s: float | None = None,
        max_requests_per_s: float | None = None,
    ) -> Mapping[str, Any]:
        """Change its options, as `Sources.change` does."""
        return Sources(self._transport).change(
            self.name,
            exclude=exclude,
            part_of=part_of,
            layout=layout,
            mount=mount,
            max_mb_per_s=max_mb_per_s,
            max_requests_per_s=max_requests_per_s,
        )

    def remove(self) -> Mapping[str, Any]:
        """Remove it and its files' rows from the catalog: see `Sources.remove`."""
        return Sources(self._transport).remove(self.name)


class Sources:
    """The server's sources."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        """The server; nothing is asked."""
        return f"<Sources of {self._transport.url}>"

    def __iter__(self) -> Iterator[Source]:
        """Every source."""
        return self.list()

    def list(self) -> Iterator[Source]:
        """Every source, fetched as they are wanted.

        Raises:
            FramesiftServerError: The server does not answer.
        """
        bodies = paged(self._transport, "/v1/sources", "sources")
        return (Source(body, self._transport) for body in bodies)

    def get(self, name: str) -> Source:
        """A source.

        Raises:
            NotFound: There is none of that name.
        """
        return Source(self._transport.json("GET", _path(name)), self._transport)

    def add(self, name: str, uri: str, **more: Any) -> Source:
        """Add a source, as the server sees it: a path is one of its machine.

        Args:
            uri: Folder or .tar archive: file:/// or s3:// URI.
            **more: platform, datasource, cluster, site, endpoint_url, anonymous, profile, region,
                ca_bundle, exclude, part_of, mount, max_mb_per_s, max_requests_per_s, as
                `framesift source add` takes them; layout, a preset's name or a document.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        request = {"name": name, "uri": uri, **more}
        answer = self._transport.json("POST", "/v1/sources", request, creates=True)
        return Source(answer, self._transport)

    def contents(self, name: str) -> Mapping[str, Any]:
        """Counts of what hangs on a source: files, frames, tags that people gave, datasets.

        Raises:
            NotFound: There is none of that name.
        """
        return self._transport.json("GET", f"{_path(name)}/contents")

    def change(
        self,
        name: str,
        *,
        uri: str | None = None,
        differing: bool = False,
        exclude: Sequence[str] | None = None,
        part_of: str | None = None,
        layout: str | Mapping[str, Any] | None = None,
        mount: str | None = None,
        max_mb_per_s: float | None = None,
        max_requests_per_s: float | None = None,
    ) -> Mapping[str, Any]:
        """Change a source; what is None stays.

        Args:
            uri: Where its files lie now, as the server sees it; its datasets follow.
            differing: With ``uri``, also where catalogued files are missing or changed there.
            exclude: Names or paths to leave out from the next scan on, in place of the present
                list; an empty one leaves out nothing.
            part_of: The data set that it is a part of; its own where empty.
            layout: A preset's name or a layout's document; empty where its names are to tell.
            mount: Its root on a mounted file system, HOST_FOLDER[:FOLDER_IN_CONTAINER]; empty for
                none.
            max_mb_per_s: Megabytes (10^6 bytes) a second that a staging fetches from it at most; 0
                for any number.
            max_requests_per_s: Requests for its files that a staging sends a second at most; 0 for
                any number.

        Returns:
            Its ``name``, ``uri``, ``exclude``, ``part_of``, ``layout``, ``mount``,
            ``max_mb_per_s`` and ``max_requests_per_s`` as they are now; with ``uri`` how many files
            are ``same``, ``changed``, ``missing`` and ``new`` there.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        options = {
            "uri": uri,
            "differing": differing or None,
            "exclude": None if exclude is None else [*exclude],
            "part_of": part_of,
            "layout": layout,
            "mount": mount,
            "max_mb_per_s": max_mb_per_s,
            "max_requests_per_s": max_requests_per_s,
        }
        changes = {key: value for key, value in options.items() if value is not None}
        return self._transport.json("PATCH", _path(name), changes)

    def remove(self, name: str) -> Mapping[str, Any]:
        """Remove a source and its files' rows from the catalog; the files stay where they are.

        Tags that people gave are kept: they return when the files are catalogued under the same
        cluster and datasource again.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        return self._transport.json("DELETE", _path(name))


def _path(name: str) -> str:
    return f"/v1/sources/{quote(name, safe='')}"
