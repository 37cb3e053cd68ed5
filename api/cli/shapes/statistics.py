"""Statistics of frames: api.services.statistics.service and framesift.statistics.

A server's answers may be of another version: api.cli.read_answer reads both as models.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from query.question.question import Question
    from query.statistics.class_report import Grouping


class Statistics(Protocol):
    """See api.services.statistics.service.Statistics."""

    def classes(
        self,
        *,
        question: "Question" = ...,
        dataset: str | None = None,
        split: str | None = None,
        by: "Grouping | None" = None,
        quantiles: bool = False,
        at: int | None = None,
    ) -> object: ...

    def histogram(
        self,
        *tags: str,
        bins: int | None = None,
        top: int | None = None,
        edges: Mapping[str, Sequence[float]] | None = None,
        log: Sequence[str] = (),
        zero: Sequence[str] = (),
        question: "Question" = ...,
        dataset: str | None = None,
        split: str | None = None,
        at: int | None = None,
    ) -> object: ...

    def facets(
        self,
        *tags: str,
        question: "Question" = ...,
        dataset: str | None = None,
        split: str | None = None,
        at: int | None = None,
    ) -> object: ...

    def correlation(
        self,
        validation: str,
        *,
        dataset: str | None = None,
        split: str | None = None,
        at: int | None = None,
    ) -> object: ...

    def gaps(
        self,
        dataset: str,
        *,
        split: str | None = None,
        at_least: int = 1,
        scenes: bool = False,
        at: int | None = None,
    ) -> object: ...
