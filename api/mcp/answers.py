"""Answers to an assistant's questions: the routes' functions with short answers."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from api.http.rules import READ, Rule
from api.services.accounts.callers import Caller
from api.services.selections import ask, described, reason_for_none
from api.services.statistics.service import Statistics
from api.workspace import Workspace
from catalog.errors import InvalidInput
from catalog.lake.views import tag_columns
from catalog.records.datasets import recorded_dataset, recorded_datasets
from catalog.tags.tag_kinds import kinds
from query.frames.selection import Question, Selection
from query.question.condition import leaves
from query.run.result_format import to_records
from query.run.run_sql import run_sql
from query.statistics.class_report import Grouping

MOST_ROWS = 1_000
MOST_FRAMES = 100
_TIMEOUT_S = 60.0
_MOST_VALUES = 50
_SHOWN = ("fkey", "scene", "camera", "frame_number")


async def _unnoted() -> None:
    """Where nobody is refused anything, there is nothing to note."""


@dataclass(frozen=True)
class Desk:
    """The caller of a tool, and the part of the home that they may see.

    Attributes:
        workspace: With as much of the catalog as the caller may see.
        caller: Who asks.
        url: Where the server's own routes are; "" where there is no server.
        note_refusal: Called where the caller is refused an answer.
    """

    workspace: Workspace
    caller: Caller
    url: str = ""
    note_refusal: Callable[[], Awaitable[None]] = _unnoted

    @property
    def timeout_s(self) -> float:
        """Time limit of a question: an assistant does not wait longer [s]."""
        return min(self.workspace.settings.query_timeout_s, _TIMEOUT_S)

    @property
    def statistics(self) -> Statistics:
        """Statistics of the frames that the caller may see."""
        return Statistics(self.workspace, self.timeout_s)

    def need(self, rule: Rule) -> None:
        """Go on only where the caller may ask a route of that rule: the one that answers the same.

        Raises:
            NotAllowed: They may not.
        """
        if rule.permission is not None:
            self.caller.need(rule.permission)


def catalog_of(desk: Desk) -> dict[str, Any]:
    """Names that a question can use: classes, tags, cameras, scenes, datasets."""
    desk.need(READ)
    workspace = desk.workspace
    names = workspace.class_names()
    report = desk.statistics.report()
    with workspace.catalog.reading(report.snapshot) as cursor:
        columns = [column for column in tag_columns(cursor) if column.tag not in names]
        tag_kinds = kinds(cursor)
    tags = [
        {"tag": column.tag, "type": column.type.lower()}
        | ({"values": list(tag_kinds[column.tag].allowed)} if column.tag in tag_kinds else {})
        for column in columns
    ]
    answer: dict[str, Any] = {
        "snapshot": report.snapshot,
        "frames": report.frames,
        "classes": [
            {"tag": share.tag, "name": share.name, "frames": share.frames, "share": share.share}
            for share in report.classes
        ],
        "tags": tags,
        "cameras": _values(desk, "camera", report.snapshot),
        "scenes": _values(desk, "scene", report.snapshot),
    }
    datasets = recorded_datasets(workspace.records)
    answer["datasets"] = [f"{one.name}@{one.version}" for one in datasets][-_MOST_VALUES:]
    return answer


def _values(desk: Desk, tag: str, at: int) -> list[dict[str, Any]]:
    """The most frequent values of a tag, and how many frames have each."""
    statement = (
        f"select {tag}, count(*) as frames from metaocean_view where {tag} is not null "
        f"group by {tag} order by 2 desc, 1"
    )
    answer = run_sql(
        desk.workspace.catalog, statement, at=at, max_rows=_MOST_VALUES, timeout_s=desk.timeout_s
    )
    return to_records(answer.rows)


def sql_of(desk: Desk, statement: str, limit: int) -> dict[str, Any]:
    """A statement's first rows."""
    desk.need(READ)
    most = min(limit, MOST_ROWS)
    answer = run_sql(desk.workspace.catalog, statement, max_rows=most, timeout_s=desk.timeout_s)
    return {
        "columns": list(answer.rows.column_names),
        "rows": [list(record.values()) for record in to_records(answer.rows)],
        "truncated": answer.truncated,
        "snapshot": answer.snapshot,
    }


def selection_of(desk: Desk, question: Question, limit: int) -> dict[str, Any]:
    """Count of the frames that answer a question, its meaning, and the first frames."""
    selection = _selected(desk, question)
    columns = [*_SHOWN, *_asked_tags(selection)]
    frames = selection.frames.select(columns).slice(0, min(limit, MOST_FRAMES))
    return {
        **_meaning(desk, selection),
        "class_pixels": {tag: n for tag, n in selection.class_pixels().items() if n},
        "frames": to_records(frames),
    }


def proposal_of(desk: Desk, question: Question, name: str) -> dict[str, Any]:
    """A selection for a person to look at and save; nothing is created."""
    selection = _selected(desk, question)
    meaning = _meaning(desk, selection)
    text = json.dumps(meaning["question"], separators=(",", ":"))
    conditions = {
        key: value
        for key, value in meaning["question"].items()
        if key not in ("order", "limit", "sample", "seed")
    }
    listed = quote(json.dumps(conditions, separators=(",", ":")), safe="")
    return {
        **meaning,
        "name": name,
        "link": f"{desk.url}/v1/frames?question={listed}" if desk.url else None,
        "command": f"framesift dataset create {name} --question - <<< '{text}'"
        if "'" not in text
        else None,
        "saved": False,
    }


def _selected(desk: Desk, question: Question) -> Selection:
    desk.need(READ)
    return ask(desk.workspace, question)


def _meaning(desk: Desk, selection: Selection) -> dict[str, Any]:
    description = described(desk.workspace, selection.question)
    answer = {
        "question": description.question.model_dump(mode="json", exclude_defaults=True),
        "sentence": description.sentence,
        "sql": description.sql.text,
        "note": description.sql.note,
        "snapshot": description.snapshot,
        "count": len(selection),
    }
    if not len(selection):
        answer["why_empty"] = reason_for_none(desk.workspace, selection)
    return answer


def _asked_tags(selection: Selection) -> list[str]:
    named = [leaf.tag for leaf in leaves(selection.question.conditions()) if hasattr(leaf, "tag")]
    return [tag for tag in dict.fromkeys(named) if tag in selection.classes]


def classes_of(
    desk: Desk, question: Question, by: Grouping | None, dataset: str | None, split: str | None
) -> dict[str, Any]:
    """Frames and pixel share of every class that occurs."""
    desk.need(READ)
    _need_datasets(desk, dataset)
    report = desk.statistics.report(question=question, dataset=dataset, split=split, by=by)
    body = report.model_dump(mode="json", exclude_none=True)
    for group in (body, *body.get("groups", ())):
        group["classes"] = [statistic for statistic in group["classes"] if statistic["frames"]]
    return body


def histogram_of(
    desk: Desk, tags: Sequence[str], question: Question, bins: int | None, dataset: str | None
) -> dict[str, Any]:
    """Frames by the values of one tag, or of two."""
    desk.need(READ)
    _need_datasets(desk, dataset)
    if not 1 <= len(tags) <= 2:
        raise InvalidInput(f"{len(tags)} tags: expected one, or two for a table of both")
    counts = desk.statistics.histogram(
        *tags, bins=bins, top=bins, question=question, dataset=dataset
    )
    return counts.model_dump(mode="json", exclude_none=True)


def gaps_of(
    desk: Desk, dataset: str, split: str | None, at_least: int, scenes: bool
) -> dict[str, Any]:
    """Gaps of a dataset in comparison with the catalog."""
    desk.need(READ)
    report = desk.statistics.gaps(dataset, split=split, at_least=at_least, scenes=scenes)
    return report.model_dump(mode="json", exclude_none=True)


def dataset_of(desk: Desk, name: str) -> Mapping[str, Any]:
    """A dataset without its frames."""
    desk.need(READ)
    dataset = recorded_dataset(desk.workspace.records, name)
    return {
        "name": f"{dataset.name}@{dataset.version}",
        "frames": dataset.frames,
        "splits": dataset.splits,
        "snapshot": dataset.snapshot,
        "question": dataset.question,
        "class_frames": {tag: count for tag, count in dataset.class_frames.items() if count},
        "report": dataset.report,
    }


def _need_datasets(desk: Desk, dataset: str | None) -> None:
    """Datasets are not divided into collections: as on the routes, some callers may name none."""
    if dataset is not None:
        desk.need(READ)
