"""Statistics of the frames of a catalog, a question or a dataset."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from framesift.http.json_text import json_text
from framesift.http.transport import Transport
from framesift.jobs import reference
from framesift.question import Asked, Names, data_of, names_of


def asked_frames(
    question: Asked | None,
    dataset: str | Mapping[str, Any] | None,
    split: str | None,
    at: int | None,
) -> dict[str, object]:
    """Query parameters that say which frames are meant; all where nothing is given.

    Args:
        question: As a selection has it.
        dataset: Only its frames.
        split: Only this split of it.
        at: The snapshot to ask.
    """
    data = {} if question is None else data_of(question)
    conditions = _said(data)
    return {
        "question": json_text(conditions) if conditions else None,
        "dataset": None if dataset is None else reference(dataset),
        "split": split,
        "at": at,
    }


def _said(question: Mapping[str, Any]) -> dict[str, Any]:
    """The conditions that a question has."""
    return {
        key: value
        for key, value in question.items()
        if not (value is None or (isinstance(value, list) and not value))
    }


class Statistics:
    """Statistics of the server's frames."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        """The server; nothing is asked."""
        return f"<Statistics of {self._transport.url}>"

    def classes(
        self,
        *,
        question: Asked | None = None,
        dataset: str | Mapping[str, Any] | None = None,
        split: str | None = None,
        by: str | None = None,
        quantiles: bool = False,
        at: int | None = None,
    ) -> Mapping[str, Any]:
        """Frames and pixel share of every class, below "classes"; "groups" has those of each group.

        Args:
            question: As a selection has it, without order, limit and sample.
            dataset: Only its frames: NAME, NAME@VERSION or a Dataset.
            split: Only this split of it.
            by: Also for each "camera" or "scene".
            quantiles: Also quantiles, in the frames that contain the class.
            at: The catalog snapshot to ask; the dataset's or the newest when None.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        frames = asked_frames(question, dataset, split, at)
        more = {"by": by, "quantiles": "true" if quantiles else None}
        return self._transport.json("GET", "/v1/classes", query={**frames, **more})

    def histogram(
        self,
        *tags: str,
        bins: int | None = None,
        top: int | None = None,
        edges: Mapping[str, Sequence[float]] | None = None,
        log: Names = (),
        zero: Names = (),
        question: Asked | None = None,
        dataset: str | Mapping[str, Any] | None = None,
        split: str | None = None,
        at: int | None = None,
    ) -> Mapping[str, Any]:
        """Frames by the values of one tag, or of two; other arguments as of `classes`.

        Args:
            *tags: A tag, class or column; or two.
            bins: Bins of a number; 20, or 8 of two tags, when None.
            top: Most frequent texts; 20, or 8 of two tags, when None.
            edges: Edges of a tag's bins, rising.
            log: Tags with bins of equal ratio.
            zero: Tags with a bin for 0 alone.
            question: As of `classes`.
            dataset: As of `classes`.
            split: As of `classes`.
            at: As of `classes`.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        texts = [f"{tag}={','.join(map(str, values))}" for tag, values in (edges or {}).items()]
        axes = {
            "tag": list(tags),
            "bins": bins,
            "top": top,
            "edges": texts or None,
            "log": names_of(log) or None,
            "zero": names_of(zero) or None,
        }
        frames = asked_frames(question, dataset, split, at)
        return self._transport.json("GET", "/v1/statistics/histogram", query={**frames, **axes})

    def facets(
        self,
        *tags: str,
        question: Asked | None = None,
        dataset: str | Mapping[str, Any] | None = None,
        split: str | None = None,
        at: int | None = None,
    ) -> Mapping[str, Any]:
        """Every tag's histogram under the question's other conditions, and how many frames answer.

        Args:
            *tags: Only these tags' or classes'; those of every tag when none is given.
            question: As of `classes`.
            dataset: As of `classes`.
            split: As of `classes`.
            at: As of `classes`.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        data = {} if question is None else data_of(question)
        body = {
            "question": _said(data),
            "tags": list(tags) or None,
            "dataset": None if dataset is None else reference(dataset),
            "split": split,
            "at": at,
        }
        parameters = {key: value for key, value in body.items() if value is not None}
        return self._transport.json("POST", "/v1/statistics/facets", body=parameters)

    def correlation(
        self,
        validation: str,
        *,
        dataset: str | None = None,
        split: str | None = None,
        at: int | None = None,
    ) -> Mapping[str, Any]:
        """Correlate the classes' shares of the pixels with the IoU that a validation found.

        Args:
            validation: A validation job, or a training job: its newest validation.
            dataset: Whose shares; the training set's when None.
            split: Of that dataset.
            at: The catalog snapshot to ask; the dataset's when None.

        Raises:
            FramesiftServerError: The server refuses, or does not answer.
        """
        parameters = {"validation": validation, "dataset": dataset, "split": split, "at": at}
        return self._transport.json("GET", "/v1/statistics/correlation", query=parameters)

    def gaps(
        self,
        dataset: str | Mapping[str, Any],
        *,
        split: str | None = None,
        at_least: int = 1,
        scenes: bool = False,
        at: int | None = None,
    ) -> Mapping[str, Any]:
        """Gaps of a dataset in comparison with the catalog, each with the question that finds it.

        Args:
            dataset: NAME, NAME@VERSION or a Dataset.
            split: Only of this split.
            at_least: Frames wanted of each class and camera.
            scenes: Compare scenes, too.
            at: The catalog snapshot to compare with; the newest when None.

        Raises:
            FramesiftServerError: There is no such dataset or split, or the server does not answer.
        """
        return self._transport.json(
            "GET",
            f"/v1/datasets/{quote(reference(dataset), safe='@')}/gaps",
            query={
                "split": split,
                "at_least": at_least,
                "scenes": "true" if scenes else None,
                "at": at,
            },
        )
