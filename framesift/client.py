"""A server's selections and datasets, over REST."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx


class FramesiftServerError(Exception):
    """The server answered with an error, or did not answer.

    Attributes:
        status: HTTP status; None where there was no answer.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        self.status = status
        super().__init__(message)


PixelRange = tuple[int | None, int | None] | int
"""Lowest and highest pixels, None for an open end; one number means exactly that many."""

ShareRange = tuple[float | None, float | None]
"""Lowest and highest share of a frame's pixels, 0 to 1, None for an open end."""


@dataclass(frozen=True)
class Selection:
    """Frames that a server chose.

    Attributes:
        question: What was asked, as the server understood it.
        snapshot: The catalog snapshot it was asked of.
        sentence: The question in English.
        sql: The question in Db2's SQL, over metaocean_view.
        note: What of the question SQL cannot say; empty where that is nothing.
        frames: One mapping per frame, in order; class tags hold pixels.
    """

    question: Mapping[str, Any]
    snapshot: int
    sentence: str
    sql: str
    note: str
    frames: Sequence[Mapping[str, Any]]
    _client: "Client" = field(repr=False)

    def __len__(self) -> int:
        """Number of frames."""
        return len(self.frames)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """The frames, in order."""
        return iter(self.frames)

    def save(
        self, name: str, *, split: str | None = None, split_by: str = "scene", seed: int = 0
    ) -> Mapping[str, Any]:
        """Have the server save these frames as a dataset; the dataset.

        Args:
            name: The dataset's name.
            split: Such as "train=0.8,validation=0.2"; undivided when None.
            split_by: What stays on one side: "scene", "camera" or "frame".
            seed: Decides the division.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        body = {"name": name, "question": self.question, "split": split}
        return self._client._ask(
            "POST",
            "/v1/datasets",
            body | {"split_by": split_by, "seed": seed},
            at=self.snapshot,
        )

    def to_arrow(self) -> Any:
        """The frames as a pyarrow.Table (needs pyarrow)."""
        import pyarrow as pa

        return pa.Table.from_pylist([dict(frame) for frame in self.frames])

    def to_pandas(self) -> Any:
        """The frames as a pandas.DataFrame (needs pandas)."""
        import pandas as pd  # type: ignore[import-untyped,unused-ignore]

        return pd.DataFrame([dict(frame) for frame in self.frames])


class Client:
    """A connection to a server; usable as a context manager."""

    def __init__(self, url: str, token: str | None = None, timeout_s: float = 600.0) -> None:
        """Nothing is sent yet.

        Args:
            url: The server, such as "http://127.0.0.1:8008".
            token: Sent with every request, where the server asks for one.
            timeout_s: How long an answer may take.

        Raises:
            FramesiftServerError: The URL cannot be one.
        """
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout_s)
        except httpx.InvalidURL as error:
            raise FramesiftServerError(
                f"url '{url}': {error}; expected one such as http://127.0.0.1:8008"
            ) from error

    def select(
        self,
        *,
        where: str | None = None,
        camera: str | Sequence[str] = (),
        scene: str | Sequence[str] = (),
        has: str | Sequence[str] = (),
        without: str | Sequence[str] = (),
        share: Mapping[str, ShareRange] | None = None,
        time: tuple[str | None, str | None] | None = None,
        condition: Mapping[str, Any] | None = None,
        order: str | Sequence[str] = (),
        limit: int | None = None,
        sample: int | None = None,
        seed: int = 0,
        at: int | None = None,
        **ranges: PixelRange,
    ) -> Selection:
        """The frames that meet every condition.

        Args:
            where: A WHERE body in SQL.
            camera: Camera or cameras.
            scene: Scene or scenes.
            has: Class or classes that must be in the frame.
            without: Class or classes that must not be.
            share: Share of the frame's pixels per class: ``{"car": (0.01, 0.2)}``.
            time: When the recording began, both ends included: ``("2018-08", "2018-10-15")``.
            condition: More conditions as data: ``{"kind": "any", "of": [...]}``, see
                docs/selections.md.
            order: Tags to order by, each with " desc" for falling order.
            limit: At most so many frames.
            sample: So many at random, decided by ``seed``.
            seed: Seed of the sample.
            at: The catalog snapshot to ask; the newest when None.
            **ranges: Pixels per class tag: ``car=(10_000, 20_000)``, ``bicycle=(1, None)``.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        question: dict[str, Any] = {
            "ranges": [_range(tag, value) for tag, value in ranges.items()],
            "where": where,
            "cameras": _names(camera),
            "scenes": _names(scene),
            "order": _names(order),
            "limit": limit,
            "sample": sample,
            "seed": seed,
            "condition": _all(
                [
                    *({"kind": "has", "tag": name} for name in _names(has)),
                    *({"kind": "without", "tag": name} for name in _names(without)),
                    *(
                        {"kind": "share", "tag": name, "lowest": low, "highest": high}
                        for name, (low, high) in (share or {}).items()
                    ),
                    *([] if time is None else [_time(*time)]),
                    *([] if condition is None else [condition]),
                ]
            ),
        }
        body = self._ask("POST", "/v1/selections", question, at=at)
        return Selection(
            question=body["question"],
            snapshot=body["snapshot"],
            sentence=body["sentence"],
            sql=body["sql"],
            note=body["note"],
            frames=body["frames"],
            _client=self,
        )

    def classes(self, *, at: int | None = None) -> Sequence[Mapping[str, Any]]:
        """Frames and pixel share of every class.

        Args:
            at: The catalog snapshot to ask; the newest when None.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        classes: Sequence[Mapping[str, Any]] = self._ask("GET", "/v1/classes", at=at)["classes"]
        return classes

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(
        self, method: str, path: str, body: object = None, *, at: int | None = None
    ) -> Mapping[str, Any]:
        parameters = {} if at is None else {"at": at}
        try:
            answer = self._http.request(method, path, json=body, params=parameters)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise FramesiftServerError(
                f"{self._http.base_url}: no answer: {error}; is 'framesift serve' running there?"
            ) from error
        try:
            data = answer.json()
        except ValueError:
            data = None
        if answer.is_success and isinstance(data, dict):
            return data
        if isinstance(data, dict) and isinstance(data.get("detail"), str):
            raise FramesiftServerError(data["detail"], answer.status_code)
        raise FramesiftServerError(
            f"{answer.url}: {answer.status_code} {answer.reason_phrase}, and no answer of a "
            "Framesift server; is the URL right?",
            answer.status_code,
        )


def connect(url: str, token: str | None = None) -> Client:
    """A client of the server at ``url``; nothing is sent before the first question."""
    return Client(url, token)


def _time(start: str | None, end: str | None) -> Mapping[str, Any]:
    return {"kind": "time", "start": start, "end": end}


def _all(conditions: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return {"kind": "all", "of": conditions}


def _range(tag: str, value: PixelRange) -> dict[str, Any]:
    lowest, highest = (value, value) if isinstance(value, int) else value
    return {"tag": tag, "lowest": lowest, "highest": highest}


def _names(value: str | Sequence[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)
