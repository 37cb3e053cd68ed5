"""Extractions, which read tags from the files of frames: what can be done with them."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from api.schemas.home_orders import Extraction
from api.schemas.jobs import JobBody
from api.services.call import Service
from api.services.jobs.home_orders import begin_order
from catalog.records.sources import recorded_source
from catalog.tags.extractions import problems
from ingest.extractors.registry import (
    check_known,
    check_some,
    extractor_in_file,
    extractor_named,
    known_extractors,
)
from ingest.extractors.run import ExtractCounts, extraction_of, run_extractor
from ingest.sources.recorded import open_recorded, other_sources_of_data_set


class Extractions(Service):
    """Extractions of a home's sources."""

    def known(self) -> list[str]:
        """Names of the extractors that are installed, sorted."""
        return sorted(known_extractors())

    def tags_of(self, extractor: str) -> list[str]:
        """The tags that an extractor reads."""
        return list(extractor_named(extractor).columns)

    def begin(self, order: Extraction) -> JobBody:
        """Read tags from the files of a source's frames; the job that does it."""
        name = recorded_source(self._workspace.records, order.source).name
        for extractor in order.extractors:
            check_known(extractor)
        job = begin_order(
            self._workspace, replace(order, source=name), name, queue=self._session.job_queue
        )
        return JobBody.of(job, self._workspace.place)

    def run(
        self, order: Extraction, progress: Callable[[str, ExtractCounts], None]
    ) -> Iterator[dict[str, Any]]:
        """Read tags in this process, as the job of `begin`.

        Args:
            order: What is read.
            progress: Called with the family that is read, and its counts.

        Yields:
            Of each extractor ``source``, ``family``, counts, and ``problems`` in full.
        """
        workspace = self._workspace
        record = recorded_source(workspace.records, order.source)
        loaded = [extractor_named(name) for name in order.extractors]
        loaded += [extractor_in_file(file) for file in order.own]
        check_some(loaded)
        other_sources = other_sources_of_data_set(workspace.records, record)
        for extractor in loaded:
            body = {"source": order.source, "family": extractor.family}
            if not order.errors:
                counts = run_extractor(
                    workspace.whole_catalog,
                    record,
                    extractor,
                    open_files=partial(open_recorded, index_folder=workspace.indexes),
                    other_sources=other_sources,
                    full=order.full,
                    workers=order.workers,
                    progress=partial(progress, extractor.family),
                )
                body |= asdict(counts)
            bad = problems(workspace.catalog, extraction_of(record, extractor, other_sources))
            yield {**body, "problems": [asdict(problem) for problem in bad]}
