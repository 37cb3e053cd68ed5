"""Statistics of frames."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

from api.cli import chosen
from api.places.answers import read_as
from catalog.values import ClassShare
from query.frames.selection import Question
from query.statistics.class_report import ClassReport, Grouping
from query.statistics.correlations import Correlation
from query.statistics.gap_report import GapReport
from query.statistics.histogram_report import Histogram

if TYPE_CHECKING:  # it imports httpx, which commands on a home do without
    from framesift import Client

_ALL = Question()


@dataclass(frozen=True)
class Asked:
    """Which frames: those that answer a question, of a dataset or its split, of a snapshot."""

    question: Question = _ALL
    dataset: str | None = None
    split: str | None = None
    at: int | None = None


@dataclass(frozen=True)
class Axes:
    """A histogram's tags and bins, as api.cli.axis_options.axes_of takes them."""

    tags: Sequence[str]
    bins: int | None
    top: int | None
    edges: Sequence[str]
    log: Sequence[str]
    zero: Sequence[str]


class Statistics(Protocol):
    """Who counts frames."""

    def shares(self, at: int | None) -> Sequence[ClassShare]:
        """Every class in all labelled frames."""

    def classes(self, asked: Asked, by: Grouping | None, quantiles: bool) -> ClassReport:
        """The classes in some frames."""

    def histogram(self, asked: Asked, axes: Axes) -> Histogram:
        """Frames by the values of one tag, or of two."""

    def correlation(self, validation: str, asked: Asked) -> Correlation:
        """Classes' shares against a validation's IoU; the question plays no part."""

    def gaps(self, asked: Asked, at_least: int, scenes: bool) -> GapReport:
        """What a dataset lacks that the catalog has; the question plays no part."""


def statistics() -> Statistics:
    """Of the chosen place."""
    if chosen.server() is not None:
        return ServerStatistics(chosen.client())
    from api.places.home.statistics import HomeStatistics

    return HomeStatistics(chosen.home())


@dataclass(frozen=True)
class ServerStatistics:
    """A server."""

    server: "Client"

    def shares(self, at: int | None) -> Sequence[ClassShare]:
        """Every class."""
        found = self.server.call("GET", "/v1/classes", asked={"at": at})["classes"]
        names = ClassShare.__dataclass_fields__
        return [ClassShare(**{name: one[name] for name in names}) for one in found]

    def classes(self, asked: Asked, by: Grouping | None, quantiles: bool) -> ClassReport:
        """The classes in some frames."""
        more = {"by": by, "quantiles": "true" if quantiles else None}
        return read_as(ClassReport, self._get("/v1/classes", asked, more))

    def histogram(self, asked: Asked, axes: Axes) -> Histogram:
        """Frames by values."""
        more = {("tag" if name == "tags" else name): v for name, v in asdict(axes).items()}
        return read_as(Histogram, self._get("/v1/statistics/histogram", asked, more))

    def correlation(self, validation: str, asked: Asked) -> Correlation:
        """Shares against IoU."""
        more = {"validation": validation}
        return read_as(Correlation, self._get("/v1/statistics/correlation", asked, more))

    def gaps(self, asked: Asked, at_least: int, scenes: bool) -> GapReport:
        """What a dataset lacks."""
        path = f"/v1/datasets/{quote(asked.dataset or '', safe='@')}/gaps"
        more = {"at_least": at_least, "scenes": "true" if scenes else None, "dataset": None}
        body = self._get(path, asked, more)
        body.setdefault("split", None)  # nulls are left out
        return read_as(GapReport, body)

    def _get(self, path: str, asked: Asked, more: dict[str, Any]) -> Any:
        given = {
            "question": asked.question.model_dump_json(exclude_defaults=True)
            if asked.question != Question()
            else None,
            "dataset": asked.dataset,
            "split": asked.split,
            "at": asked.at,
        }
        return self.server.call("GET", path, asked={**given, **more})
