"""Statistics of frames: classes, histograms, facets, a validation's scores, a dataset's gaps.

What a statistic needs is imported where it begins.
"""

from collections.abc import Mapping, Sequence

from api.services.call import Service
from query.question.question import Question
from query.statistics.class_report import ClassesAnswer, ClassReport, Grouping
from query.statistics.correlations import Correlation
from query.statistics.facet_report import FacetReport, FacetSteps
from query.statistics.gap_report import GapReport
from query.statistics.histogram_report import Histogram

_ALL = Question()


class Statistics(Service):
    """Statistics of a home's frames."""

    def classes(
        self,
        *,
        question: Question = _ALL,
        dataset: str | None = None,
        split: str | None = None,
        by: Grouping | None = None,
        quantiles: bool = False,
        at: int | None = None,
    ) -> ClassesAnswer:
        """Frames and pixel share of every class: as `report`; of all frames the classes alone."""
        report = self.report(
            question=question, dataset=dataset, split=split, by=by, quantiles=quantiles, at=at
        )
        if (question, dataset, split, by, quantiles) != (_ALL, None, None, None, False):
            return report
        classes = (one.model_copy(update={"presence": None}) for one in report.classes)
        return ClassesAnswer(classes=tuple(classes))

    def report(
        self,
        *,
        question: Question = _ALL,
        dataset: str | None = None,
        split: str | None = None,
        by: Grouping | None = None,
        quantiles: bool = False,
        at: int | None = None,
    ) -> ClassReport:
        """The classes in some frames: query.statistics.class_statistics.class_report.

        Args:
            question: Whose frames; see api.services.statistics.frames.frames_of.
            at: The snapshot to ask; the dataset's, or else the newest, when None.
        """
        from api.services.statistics.frames import frames_of
        from query.statistics.class_statistics import class_report

        return class_report(
            self._workspace.catalog,
            frames_of(self._workspace, question, dataset, split, at),
            by=by,
            quantiles=quantiles,
        )

    def histogram(
        self,
        *tags: str,
        bins: int | None = None,
        top: int | None = None,
        edges: Mapping[str, Sequence[float]] | None = None,
        log: Sequence[str] = (),
        zero: Sequence[str] = (),
        question: Question = _ALL,
        dataset: str | None = None,
        split: str | None = None,
        at: int | None = None,
    ) -> Histogram:
        """Frames by the values of one tag, or of two."""
        from api.services.statistics.frames import frames_of
        from api.services.statistics.histogram_axes import axes_of
        from query.statistics.histograms import histogram

        return histogram(
            self._workspace.catalog,
            axes_of(tags, bins, top, edges or {}, log, zero),
            frames_of(self._workspace, question, dataset, split, at),
        )

    def facets(
        self,
        *tags: str,
        question: Question = _ALL,
        dataset: str | None = None,
        split: str | None = None,
        at: int | None = None,
    ) -> FacetReport:
        """Every tag's histogram under a question's other conditions; the frames that answer it."""
        from api.services.statistics.frames import frames_of
        from query.statistics.facets import facets

        frames = frames_of(self._workspace, question, dataset, split, at)
        return facets(self._workspace.catalog, frames, tags or None)

    def facets_by_step(
        self,
        tag: str,
        steps: Sequence[Question],
        *,
        question: Question = _ALL,
        dataset: str | None = None,
        split: str | None = None,
        at: int | None = None,
    ) -> FacetSteps:
        """`facets` at each position of a tag's slider: query.statistics.facets.facets_by_step."""
        from api.services.statistics.frames import frames_of
        from query.statistics.facets import facets_by_step

        frames = frames_of(self._workspace, question, dataset, split, at)
        return facets_by_step(self._workspace.catalog, frames, tag, steps)

    def correlation(
        self,
        validation: str,
        *,
        dataset: str | None = None,
        split: str | None = None,
        at: int | None = None,
        files: bool = False,
    ) -> Correlation:
        """Classes' shares against the IoU of a validation, which may be a file where ``files``."""
        from api.services.statistics.share_and_iou import share_and_iou

        return share_and_iou(self._workspace, validation, dataset, split, at, files=files)

    def gaps(
        self,
        dataset: str,
        *,
        split: str | None = None,
        at_least: int = 1,
        scenes: bool = False,
        at: int | None = None,
    ) -> GapReport:
        """Gaps of a dataset, or one of its splits, in comparison with the catalog."""
        from api.services.statistics.dataset_gaps import dataset_gaps

        return dataset_gaps(self._workspace, dataset, split, at_least, scenes, at)
