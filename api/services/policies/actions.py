"""Runs each action of a policy: here catalog, sources and extractors come together."""

from collections.abc import Callable
from functools import partial
from pathlib import PurePosixPath

from api.workspace import Workspace
from catalog.accounts import row_collections
from catalog.errors import InvalidInput, UnknownName
from catalog.lake.catalog import Catalog
from catalog.limited_store import LimitedStore
from catalog.records.policy_tables import Policy
from catalog.records.sources import recorded_source, recorded_sources
from catalog.records.store import RecordStore
from catalog.records.tables import Source
from ingest.extractors.base import Extractor
from ingest.extractors.registry import extractor_named
from ingest.extractors.run import ExtractCounts, run_extractor
from ingest.sources.listed_read import read_listed
from ingest.sources.recorded import open_recorded, other_sources_of_data_set
from pipeline.policies import autotag, csv_import
from pipeline.policies.actions import (
    BATCH_ROWS,
    DeepInspect,
    ImportTags,
    SetTags,
    TakeFromField,
    action_of,
)
from pipeline.policies.matching import check_condition, matching
from pipeline.policies.report import Killed, Report
from query.question.collection_rule import collection_column, rows_of


def check(workspace: Workspace, policy: Policy) -> None:
    """The policy can be kept: its action, tags, condition and collections can be what they are."""
    store, records = workspace.catalog, workspace.records
    action = action_of(policy.action, policy.parameters)
    with store.reading() as snapshot:
        check_condition(snapshot, policy.condition)
        if isinstance(action, SetTags | TakeFromField):
            autotag.check(snapshot, records, action)
    if isinstance(action, ImportTags):
        _tag_file(records, action)
    elif isinstance(action, DeepInspect):
        _extractor(action)


def work_of(
    workspace: Workspace, policy: Policy, batch_rows: int = BATCH_ROWS
) -> Callable[[Report], None]:
    """The work of a run of the policy."""
    store, records = workspace.whole_catalog, workspace.records
    action = action_of(policy.action, policy.parameters)
    if isinstance(action, SetTags | TakeFromField):
        return lambda report: autotag.run(
            store, _rows_of(workspace, policy), records, policy, action, report, batch_rows
        )
    if isinstance(action, ImportTags):
        return partial(_import, workspace, policy, action, batch_rows)
    return partial(_inspect, workspace, policy, action)


def _import(
    workspace: Workspace, policy: Policy, action: ImportTags, batch_rows: int, report: Report
) -> None:
    source, key = _tag_file(workspace.records, action)
    files = open_recorded(source, workspace.indexes)
    listed = next(iter(files.list(key)), None)
    content = files.read(key) if listed is None else read_listed(files, listed).content
    catalog = _rows_of(workspace, policy)
    csv_import.run(workspace.whole_catalog, catalog, policy, content, report, batch_rows)


def _rows_of(workspace: Workspace, policy: Policy) -> Catalog:
    """The rows that a run of the policy may look at: all, or those of its collections."""
    if not policy.collections:
        return workspace.catalog
    collections = sorted(
        (row_collections.recorded(workspace.records, name)[0] for name in policy.collections),
        key=lambda collection: collection.id,
    )
    condition = rows_of([collection.rule for collection in collections])
    column = collection_column(tuple((one.name, one.rule) for one in collections))
    return LimitedStore(workspace.whole_catalog, condition, column)


def _tag_file(records: RecordStore, action: ImportTags) -> tuple[Source, str]:
    """The source that holds the tag file, and the file's key in it."""
    source = recorded_source(records, action.source_connection)
    path = action.tag_file_path
    for root in (f"{source.datasource}/", f"{source.uri.removeprefix('file://')}/"):
        if path.startswith(root):
            path = path.removeprefix(root)
            break
    parts = path.split("/")
    if PurePosixPath(path).is_absolute() or any(segment in ("", ".", "..") for segment in parts):
        raise InvalidInput(
            f"tag_file_path '{action.tag_file_path[:200]}': expected a file of connection "
            f"{source.name}, such as {source.datasource}/labels.csv"
        )
    return source, path


def _extractor(action: DeepInspect) -> Extractor:
    extractor = extractor_named(action.agent)
    for tag in action.extract_tags:
        if tag.lower() not in extractor.columns:
            raise UnknownName(f"tag of agent {action.agent}", tag[:80], extractor.columns)
    return extractor


def _inspect(workspace: Workspace, policy: Policy, action: DeepInspect, report: Report) -> None:
    """Read every frame that the policy finds; other files have nothing to give."""
    report.heed()
    extractor, counts = _extractor(action), report.counts
    tags = {tag.lower() for tag in action.extract_tags}
    files = matching(_rows_of(workspace, policy), policy, ["fkey", "cluster", "datasource"])
    counts.total = files.num_rows
    by_source: dict[tuple[str, str], set[str]] = {}
    for row in files.to_batches(max_chunksize=10_000):
        for fkey, cluster, datasource in zip(*(c.to_pylist() for c in row.columns), strict=True):
            by_source.setdefault((cluster, datasource), set()).add(fkey)
    counts.skipped = counts.total
    for source in recorded_sources(workspace.records):
        only = by_source.get((source.cluster, source.datasource))
        if only:
            _inspect_source(workspace, source, (extractor, tags), only, report)
    counts.submitted = counts.total
    report.heed()


def _inspect_source(
    workspace: Workspace,
    source: Source,
    inspection: tuple[Extractor, set[str]],
    only: set[str],
    report: Report,
) -> None:
    """Read the frames of a source; ``inspection`` is the extractor and its tags to write."""
    extractor, tags = inspection
    counts, before = report.counts, (report.counts.completed, report.counts.failed)
    killed = False

    def show(read: ExtractCounts) -> None:
        counts.failed = before[1] + read.bad_files
        counts.completed = before[0] + read.read - read.bad_files
        counts.submitted = counts.completed + counts.failed
        counts.skipped = counts.total - counts.submitted

    def goes_on() -> bool:
        nonlocal killed
        try:
            report.heed_now_and_then()
        except Killed:
            killed = True
        return not killed

    run_extractor(
        workspace.whole_catalog,
        source,
        extractor,
        full=True,
        open_files=partial(open_recorded, index_folder=workspace.indexes),
        other_sources=other_sources_of_data_set(workspace.records, source),
        tags=tags,
        progress=show,
        only=only,
        goes_on=goes_on,
    )
    if killed:
        raise Killed
