"""Frames page by page, all pages of one snapshot."""

import base64
import binascii
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from catalog.errors import InvalidInput, UnknownName
from catalog.lake.catalog import Catalog
from catalog.lake.wide_names import FKEY_HASH, LABEL_SIZE
from query.frames.frame_order import FrameOrder
from query.run.result_format import to_records
from query.statistics.population import POPULATION, Frames, population

DEFAULT_COLUMNS = ("fkey", "scene", "camera", "frame_number", "image_width", "image_height")
"""Columns of a page of frames where the request names none."""

_INTERNAL = (FKEY_HASH, LABEL_SIZE)


@dataclass(frozen=True)
class Page:
    """Frames in their order."""

    snapshot: int
    """Number of the snapshot that all pages are of."""
    rows: pa.Table
    last: str | None
    """fkey of the last frame where more follow; else None."""

    @property
    def frames(self) -> list[dict[str, Any]]:
        """The rows as JSON can hold them."""
        return to_records(self.rows)


@dataclass(frozen=True)
class PageStart:
    """Start of a page: behind which frame of which snapshot."""

    snapshot: int
    after: str
    """fkey of the last frame that was given."""

    def cursor(self, question: str) -> str:
        """The place as a text without meaning for clients, good for the same ``question`` only."""
        content = json.dumps([self.snapshot, self.after, _digest(question)])
        return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")

    @classmethod
    def parse(cls, cursor: str, question: str) -> "PageStart":
        """The place that a ``cursor`` was made of.

        Raises:
            InvalidInput: It is no cursor, or one of another question.
        """
        try:
            text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True)
            snapshot, after, digest = json.loads(text)
            after.encode()  # half a character is no text
        except (ValueError, TypeError, AttributeError, RecursionError, binascii.Error) as error:
            raise InvalidInput(
                "cursor: expected the 'next' of an earlier page as it was; begin without one"
            ) from error
        if type(snapshot) is not int or digest != _digest(question):
            raise InvalidInput(
                "cursor: it is of another question; repeat the parameters of the first page "
                "(limit and columns may change), or begin without one"
            )
        return cls(snapshot, after)


def _digest(question: str) -> str:
    return hashlib.sha256(question.encode("utf-8", "replace")).hexdigest()[:16]


def page_of(
    store: Catalog,
    frames: Frames,
    columns: Sequence[str],
    limit: int,
    after: PageStart | None = None,
    order: FrameOrder | None = None,
) -> Page:
    """One page of the frames.

    Args:
        columns: What of each frame, besides fkey, which is always there.
        after: Where the page begins; at the first frame when None.
        order: By fkey when None.

    Raises:
        InvalidInput: The question is ordered, limited or a sample.
        UnknownName: There is no such column, class, camera or scene.
    """
    question = frames.question
    if question.order or question.limit is not None or question.sample is not None:
        raise InvalidInput(
            "question: pages are of all frames, so its order, limit and sample play no "
            "part; leave them out, or ask POST /v1/selections"
        )
    if after is not None:
        frames = replace(frames, at=after.snapshot)
    with population(store, frames) as members:
        known = [name for name in members.relation.columns if name not in _INTERNAL]
        for name in columns:
            if name not in known:
                raise UnknownName("column", name, known)
        if order is not None:
            order.check(known)
        listed = ", ".join(f'"{name}"' for name in dict.fromkeys(["fkey", *columns]))
        before, among, later = "", POPULATION, ""
        by = "fkey" if order is None else order.by
        bound: tuple[object, ...] = ()
        if after is not None and order is None:
            later, bound = "fkey > ? AND ", (after.after,)
        elif after is not None and order is not None:
            before, among = f", here AS ({order.here}) ", f"{POPULATION}, here"
            later, bound = f"{order.is_behind} AND ", (after.after,)
        rows = members.table(
            f"{before}SELECT {listed} FROM {among} WHERE {later}{members.relation.has_label} "
            f"ORDER BY {by} LIMIT {limit + 1}",
            bound,
        )
        listed_rows = rows.slice(0, limit)
        last = listed_rows["fkey"][-1].as_py() if rows.num_rows > limit else None
        return Page(members.snapshot, listed_rows, last)


def fkeys_of(store: Catalog, frames: Frames) -> list[str]:
    """The fkey of each of the frames, in order."""
    with population(store, frames) as members:
        statement = f"SELECT fkey FROM {POPULATION} WHERE {members.relation.has_label}"
        fkeys: list[str] = members.table(f"{statement} ORDER BY fkey")["fkey"].to_pylist()
    return fkeys
