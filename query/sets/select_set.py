"""A set as a selection: asked of one snapshot, with the columns that dividing it needs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from catalog.errors import InvalidInput
from catalog.lake.catalog import Catalog
from catalog.lake.snapshot import Snapshot
from catalog.lake.wide_names import FKEY_HASH
from query.frames.candidates import DUPLICATE, columns_of
from query.frames.sampling import hashes_of
from query.frames.select_frames import frames_of, further_columns, select_frames
from query.frames.selection import Selection
from query.question.conditions import relation_for
from query.question.of_model import asking
from query.question.question import Question
from query.sets.draw import Frames, draw_set, near_rows
from query.sets.leakage_guard import DRIVE, LeakageGuard
from query.sets.methods import Method, Sample


@dataclass(frozen=True)
class SetRequest:
    """The request for a set."""

    question: Question
    """Which frames; its limit and sample only where there is no method."""
    method: Method | None = None
    """How to choose among them; all of them when None."""
    seed: int = 0
    """Decides between frames that fit equally."""
    leakage_guard: LeakageGuard | None = None
    columns: Sequence[str] = ()
    """Columns that the selection should have besides its own."""


def select_set(
    store: Catalog,
    request: SetRequest,
    at: int | None = None,
) -> tuple[Selection, dict[str, Any]]:
    """The set, and a report of how it came to be."""
    with asking(store, request.question, at) as (snapshot, plain):
        # What is wrong with them is said before any frame is asked for.
        further_columns(snapshot.every_frame, request.columns, snapshot.classes, (DRIVE,))
        selection: Selection
        report: dict[str, Any] = {}
        method, question = _drawn_by(replace(request, question=plain))
        if method is None:
            selection, report = _every_frame(store, request, snapshot)
        else:
            relation = relation_for(snapshot, question)
            frames = Frames(snapshot, relation, question, request.leakage_guard)
            drawn = draw_set(frames, method, request.seed)
            rows, classes = frames_of(snapshot, drawn.hashes)
            named = request.question.model_copy(update={"snapshot": snapshot.number})
            selection, report = Selection(named, snapshot.number, rows, classes), drawn.report
        return with_columns(snapshot, selection, request.columns), report


def _drawn_by(request: SetRequest) -> tuple[Method | None, Question]:
    """The method, and its question: a sample of frames that keep away from others is one, too."""
    question = request.question
    if request.method is None and request.leakage_guard is not None and question.sample is not None:
        if question.limit is not None or question.order:
            raise InvalidInput("a sample apart from another dataset has neither order nor limit")
        return Sample(frames=question.sample), question.model_copy(update={"sample": None})
    return request.method, question


def _every_frame(
    store: Catalog, request: SetRequest, snapshot: Snapshot
) -> tuple[Selection, dict[str, Any]]:
    """All frames that answer the question, less those that are kept away from."""
    question, at = request.question, snapshot.number
    if request.leakage_guard is None:
        return select_frames(store, question, at), {}
    everything = select_frames(store, question.model_copy(update={"limit": None}), at)
    everything = with_columns(snapshot, everything, [DRIVE, DUPLICATE])
    rows = everything.frames
    hashes = pa.array(hashes_of(rows["fkey"].to_pylist()))
    near = near_rows(rows.append_column(FKEY_HASH, hashes), request.leakage_guard)
    apart = rows.filter(pa.array(~near)).slice(0, question.limit)
    asked_question = question.model_copy(update={"snapshot": at})
    return (
        replace(everything, frames=apart, question=asked_question),
        {"left_out_as_too_near": int(near.sum())},
    )


def with_columns(snapshot: Snapshot, selection: Selection, columns: Sequence[str]) -> Selection:
    """The selection with more columns of its frames; DRIVE is left out where there is none."""
    relation = snapshot.every_frame
    missing = [
        name
        for name in dict.fromkeys(columns)
        if name not in selection.frames.column_names and (name != DRIVE or name in relation.columns)
    ]
    if not missing or not len(selection):
        return selection
    hashes = hashes_of(selection.frames["fkey"].to_pylist())
    rows = columns_of(snapshot, relation, hashes, missing).rows
    fetched = np.asarray(rows[FKEY_HASH])
    order = np.argsort(fetched)[np.searchsorted(np.sort(fetched), hashes)]
    rows = rows.take(pa.array(order))
    frames = selection.frames
    for name in missing:
        frames = frames.append_column(name, rows[name])
    return replace(selection, frames=frames)
