"""Statistics of a home's frames.

The shares of all classes are one statement; what the others need is imported where they begin.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from api.places.statistics import Asked, Axes
from api.workspace import Workspace
from catalog.frames.frames import class_shares
from catalog.values import ClassShare
from query.statistics.class_report import ClassReport, Grouping
from query.statistics.correlations import Correlation
from query.statistics.gap_report import GapReport
from query.statistics.histogram_report import Histogram


@dataclass(frozen=True)
class HomeStatistics:
    """A home."""

    workspace: Workspace

    def shares(self, at: int | None) -> Sequence[ClassShare]:
        """Every class."""
        return class_shares(self.workspace.catalog, self.workspace.class_names(), at)

    def classes(self, asked: Asked, by: Grouping | None, quantiles: bool) -> ClassReport:
        """The classes in some frames."""
        from api.services.statistics import frames_of
        from query.statistics.class_statistics import class_report

        return class_report(
            self.workspace.catalog,
            self.workspace.class_names(),
            frames_of(self.workspace, asked.question, asked.dataset, asked.split, asked.at),
            by=by,
            quantiles=quantiles,
            timeout_s=self.workspace.settings.query_timeout_s,
        )

    def histogram(self, asked: Asked, axes: Axes) -> Histogram:
        """Frames by values."""
        from api.cli.axis_options import axes_of
        from api.services.statistics import frames_of
        from query.statistics.histograms import histogram

        return histogram(
            self.workspace.catalog,
            self.workspace.class_names(),
            axes_of(axes.tags, axes.bins, axes.top, axes.edges, axes.log, axes.zero),
            frames_of(self.workspace, asked.question, asked.dataset, asked.split, asked.at),
            timeout_s=self.workspace.settings.query_timeout_s,
        )

    def correlation(self, validation: str, asked: Asked) -> Correlation:
        """Shares against IoU; a validation may be a file."""
        from api.services.statistics import share_and_iou

        return share_and_iou(
            self.workspace, validation, asked.dataset, asked.split, asked.at, files=True
        )

    def gaps(self, asked: Asked, at_least: int, scenes: bool) -> GapReport:
        """What a dataset lacks."""
        from api.services.statistics import dataset_gaps

        assert asked.dataset is not None
        return dataset_gaps(self.workspace, asked.dataset, asked.split, at_least, scenes, asked.at)
