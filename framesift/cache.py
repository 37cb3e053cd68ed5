"""The cache of a server: datasets' files near the jobs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from framesift.http.pages import paged
from framesift.http.transport import Transport


class Cache:
    """The server's cache; `Dataset.stage` brings files into it."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        """The server; nothing is asked."""
        return f"<Cache of {self._transport.url}>"

    def status(self) -> Mapping[str, Any]:
        """Space in the cache, by dataset and by source, and the jobs that use it.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        return self._transport.json("GET", "/v1/cache")

    def limits(self) -> Mapping[str, Any]:
        """Limits of the cache.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        return self._transport.json("GET", "/v1/cache/limits")

    def limit(self, **limits: int | None) -> Mapping[str, Any]:
        """Set limits, for all who share the cache; those that are not given stay.

        Args:
            **limits: soft_bytes, hard_bytes, soft_files, hard_files, free_bytes, user_bytes; None
                for no limit.

        Raises:
            InvalidInput: They do not fit together.
            FramesiftServerError: The server refuses, or does not answer.
        """
        return self._transport.json("PATCH", "/v1/cache/limits", limits)

    def pin(self, dataset: str) -> Mapping[str, Any]:
        """Have a dataset stay until it is unpinned.

        Args:
            dataset: NAME, or NAME@VERSION.

        Raises:
            NotFound: It is not staged.
            FramesiftServerError: The server refuses, or does not answer.
        """
        return self._transport.json("PUT", f"/v1/cache/pins/{quote(dataset, safe='')}")

    def unpin(self, dataset: str) -> Mapping[str, Any]:
        """Let a dataset be evicted again.

        Args:
            dataset: NAME, or NAME@VERSION.

        Raises:
            NotFound: It is not staged.
            FramesiftServerError: The server refuses, or does not answer.
        """
        return self._transport.json("DELETE", f"/v1/cache/pins/{quote(dataset, safe='')}")

    def contents(
        self, dataset: str, *, filesets: Sequence[str] = (), missing: bool = False
    ) -> Iterator[Mapping[str, Any]]:
        """A dataset's files that are cached, fetched as they are wanted: source, file, bytes.

        Args:
            dataset: NAME, or NAME@VERSION.
            filesets: AFM filesets that are looked at, in place of the cache, each
                [SOURCE=]afm:FILESYSTEM/FILESET.
            missing: Those that are not cached instead.

        Raises:
            NotFound: There is no such dataset.
            FramesiftServerError: The server refuses, or does not answer.
        """
        path = f"/v1/cache/datasets/{quote(dataset, safe='')}"
        query = {"from": [*filesets] or None, "missing": missing or None}
        return paged(self._transport, path, "files", **query)

    def evict(self, dataset: str, *, filesets: Sequence[str] = ()) -> Mapping[str, Any]:
        """Remove a dataset from the cache; files that other staged datasets name stay.

        Args:
            dataset: NAME, or NAME@VERSION.
            filesets: AFM filesets that release it, in place of the cache, each
                [SOURCE=]afm:FILESYSTEM/FILESET.

        Raises:
            NotFound: It is not staged.
            FramesiftServerError: A running job uses it, it is pinned, or the server does not
                answer.
        """
        path = f"/v1/cache/datasets/{quote(dataset, safe='')}"
        return self._transport.json("DELETE", path, query={"from": [*filesets] or None})
