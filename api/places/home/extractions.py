"""Tags read from the files of a home's frames."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial

from api.places.extractions import Body, Show, Wanted, need_some
from api.workspace import Workspace
from catalog.tags.extractions import problems
from ingest.extractors.registry import extractor_in_file, extractor_named
from ingest.extractors.run import extraction_of, run_extractor
from ingest.sources.recorded import open_recorded, others_of_data_set


@dataclass(frozen=True)
class HomeExtractions:
    """A home."""

    workspace: Workspace

    def run(self, wanted: Wanted, show: Show) -> Iterator[Body]:
        """Read here."""
        workspace = self.workspace
        source = workspace.records.source(wanted.source)
        found = [extractor_named(name) for name in wanted.names]
        found += [extractor_in_file(place) for place in wanted.own]
        need_some(found)
        others = others_of_data_set(workspace.records, source)
        for extractor in found:
            body = {"source": wanted.source, "family": extractor.family}
            if not wanted.errors:
                counts = run_extractor(
                    workspace.catalog,
                    source,
                    extractor,
                    open_files=partial(open_recorded, index_folder=workspace.indexes),
                    others=others,
                    full=wanted.full,
                    workers=wanted.workers,
                    progress=partial(show, extractor.family),
                )
                body |= asdict(counts)
            bad = problems(workspace.catalog, extraction_of(source, extractor, others))
            yield {**body, "problems": [asdict(problem) for problem in bad]}
