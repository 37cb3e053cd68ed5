"""What the frames of a catalog, a question or a dataset hold."""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from framesift.jobs import reference
from framesift.question import question_of
from framesift.transport import Transport


def asked_frames(
    question: Mapping[str, Any] | None,
    conditions: Mapping[str, Any],
    dataset: str | Mapping[str, Any] | None,
    split: str | None,
    at: int | None,
) -> dict[str, object]:
    """Query parameters that say which frames are meant; all where nothing is given.

    Args:
        question: As a selection has it.
        conditions: Keywords of `Client.select`, in place of a question.
        dataset: Only its frames.
        split: Only this split of it.
        at: The snapshot to ask.

    Raises:
        TypeError: Both a question and conditions, or a keyword that there is not.
    """
    if question is not None and conditions:
        raise TypeError("question: it takes the place of conditions; leave one of them out")
    found: dict[str, object] = {}
    if conditions:
        question = question_of(**conditions)
    if question is not None:
        found["question"] = json.dumps({k: v for k, v in question.items() if v not in (None, [])})
    if dataset is not None:
        found["dataset"] = reference(dataset)
    return found | {"split": split, "at": at}


def class_report(
    transport: Transport, asked: Mapping[str, object], by: str | None, quantiles: bool
) -> Mapping[str, Any]:
    """Classes, and where asked for groups of frames with theirs."""
    return transport.json(
        "GET",
        "/v1/classes",
        asked={**asked, "by": by, "quantiles": "true" if quantiles else None},
    )


def histogram(
    transport: Transport,
    tags: Sequence[str],
    asked: Mapping[str, object],
    *,
    bins: int | None,
    top: int | None,
    edges: Mapping[str, Sequence[float]],
    log: Sequence[str],
    zero: Sequence[str],
) -> Mapping[str, Any]:
    """Frames by the values of one tag, or of two."""
    return transport.json(
        "GET",
        "/v1/statistics/histogram",
        asked={
            **asked,
            "tag": list(tags),
            "bins": bins,
            "top": top,
            "edges": [f"{tag}={','.join(map(str, at))}" for tag, at in edges.items()] or None,
            "log": list(log) or None,
            "zero": list(zero) or None,
        },
    )


def gaps(
    transport: Transport,
    dataset: str | Mapping[str, Any],
    *,
    split: str | None,
    at_least: int,
    scenes: bool,
    at: int | None,
) -> Mapping[str, Any]:
    """What a dataset lacks that the catalog has."""
    return transport.json(
        "GET",
        f"/v1/datasets/{quote(reference(dataset), safe='@')}/gaps",
        asked={
            "split": split,
            "at_least": at_least,
            "scenes": "true" if scenes else None,
            "at": at,
        },
    )
