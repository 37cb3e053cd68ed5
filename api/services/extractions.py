"""Extractions, which read tags from the files of frames: what can be done with them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from api.schemas.extractions import NewExtraction
from api.schemas.jobs import JobBody
from api.services.call import Service
from api.services.jobs.commands import begin_command
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

    def begin(
        self,
        source: str,
        extractors: Sequence[str],
        *,
        full: bool = False,
        workers: int = 2,
        errors: bool = False,
    ) -> JobBody:
        """Read tags from the files of a source's frames; the job that does it.

        Args:
            extractors: Of those that are installed.
            full: Also read frames that were read before.
            workers: Frames read at once.
            errors: Only list the bad files.
        """
        request = NewExtraction(
            source=source, extractors=[*extractors], full=full, workers=workers, errors=errors
        )
        name = recorded_source(self._workspace.records, source).name
        for extractor in extractors:
            check_known(extractor)
        options = [*(["--full"] if full else []), *(["--errors"] if errors else [])]
        options += ["--workers", str(workers)]
        arguments = ("tags", "extract", "--json", *options, "--", name, *extractors)
        return begin_command(
            self._workspace,
            "extract",
            name,
            arguments,
            request.model_dump(),
            queue=self._session.job_queue,
        )

    def run(
        self,
        source: str,
        extractors: Sequence[str],
        own: Sequence[str],
        *,
        full: bool,
        workers: int,
        errors: bool,
        progress: Callable[[str, ExtractCounts], None],
    ) -> Iterator[dict[str, Any]]:
        """Read tags in this process, as the job of `begin`.

        Args:
            extractors: Of those that are installed.
            own: Extractors as FILE.py:CLASS.
            progress: Called with the family that is read, and its counts.

        Yields:
            Of each extractor ``source``, ``family``, counts, and ``problems`` in full.
        """
        workspace = self._workspace
        record = recorded_source(workspace.records, source)
        loaded = [extractor_named(name) for name in extractors]
        loaded += [extractor_in_file(file) for file in own]
        check_some(loaded)
        other_sources = other_sources_of_data_set(workspace.records, record)
        for extractor in loaded:
            body = {"source": source, "family": extractor.family}
            if not errors:
                counts = run_extractor(
                    workspace.whole_catalog,
                    record,
                    extractor,
                    open_files=partial(open_recorded, index_folder=workspace.indexes),
                    other_sources=other_sources,
                    full=full,
                    workers=workers,
                    progress=partial(progress, extractor.family),
                )
                body |= asdict(counts)
            bad = problems(workspace.catalog, extraction_of(record, extractor, other_sources))
            yield {**body, "problems": [asdict(problem) for problem in bad]}
