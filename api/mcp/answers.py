"""Answers to an assistant's questions: the routes' functions with short answers."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from api.http.rules import READ, Rule
from api.services.selections import Answer
from api.services.session import Session
from catalog.errors import FramesiftError, InvalidInput
from catalog.lake.statement_watch import within
from query.question.question import Question
from query.run.result_format import to_records
from query.statistics.class_report import Grouping

MOST_ROWS = 1_000
MOST_FRAMES = 100
_TIMEOUT_S = 60.0
_MOST_VALUES = 50
_SHOWN = ("fkey", "scene", "camera", "frame_number")


async def _unnoted() -> None:
    """Where nobody is refused anything, there is nothing to note."""


@dataclass(frozen=True)
class ToolCaller:
    """The caller of a tool, and the part of the home that they may see."""

    session: Session
    """The services of the home, for the caller."""
    frames_url: str = ""
    """Where the server lists frames; "" where there is no server."""
    note_refusal: Callable[[], Awaitable[None]] = _unnoted
    """Called where the caller is refused an answer."""

    @property
    def timeout_s(self) -> float:
        """Time limit of a question: an assistant does not wait longer [s]."""
        return min(self.session.workspace.settings.query_timeout_s, _TIMEOUT_S)

    def error_text(self, error: FramesiftError) -> str:
        """An error's text, as far as the caller may know of the server."""
        session = self.session
        return str(error) if session.caller.sees_all else session.whole.error_text(error)

    def need(self, rule: Rule) -> None:
        """Go on only where the caller may ask the route of the same answer, whose rule this is."""
        if rule.permission is not None:
            self.session.caller.need(rule.permission)


def catalog_of(caller: ToolCaller) -> dict[str, Any]:
    """Names that a question can use: classes, tags, cameras, scenes, datasets."""
    caller.need(READ)
    with within(caller.timeout_s):
        report = caller.session.statistics.report()
    listed = caller.session.tags.by_creation(at=report.snapshot)
    classes = {share.tag for share in report.classes}
    tags = [
        {"tag": tag.tag, "type": tag.type} | ({"values": tag.values} if tag.values else {})
        for tag in listed
        if tag.tag not in classes
    ]
    newest = caller.session.datasets.newest(limit=_MOST_VALUES)
    return {
        "snapshot": report.snapshot,
        "frames": report.frames,
        "classes": [
            {"tag": share.tag, "name": share.name, "frames": share.frames, "share": share.share}
            for share in report.classes
        ],
        "tags": tags,
        "cameras": _values(caller, "camera", report.snapshot),
        "scenes": _values(caller, "scene", report.snapshot),
        "datasets": [f"{one.name}@{one.version}" for one in reversed(newest)],
    }


def _values(caller: ToolCaller, tag: str, at: int) -> list[dict[str, Any]]:
    """The most frequent values of a tag, and how many frames have each."""
    statement = (
        f"select {tag}, count(*) as frames from metaocean_view where {tag} is not null "
        f"group by {tag} order by 2 desc, 1"
    )
    with within(caller.timeout_s):
        answer = caller.session.statements.first_rows(statement, _MOST_VALUES, at=at)
    return [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]


def sql_of(caller: ToolCaller, statement: str, limit: int) -> dict[str, Any]:
    """A statement's first rows."""
    caller.need(READ)
    with within(caller.timeout_s):
        return caller.session.statements.first_rows(statement, min(limit, MOST_ROWS)).model_dump()


def selection_of(caller: ToolCaller, question: Question, limit: int) -> dict[str, Any]:
    """Count of the frames that answer a question, its meaning, and the first frames."""
    answer = _selected(caller, question)
    columns = [*_SHOWN, *answer.asked_classes]
    frames = answer.to_arrow().select(columns).slice(0, min(limit, MOST_FRAMES))
    about = answer.about
    about["class_pixels"] = {tag: n for tag, n in about["class_pixels"].items() if n}
    return {**about, "frames": to_records(frames)}


def proposal_of(caller: ToolCaller, question: Question, name: str) -> dict[str, Any]:
    """A selection for a person to look at and save; nothing is created."""
    meaning = _selected(caller, question).about
    del meaning["class_pixels"]
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
        "link": f"{caller.frames_url}?question={listed}" if caller.frames_url else None,
        "command": f"framesift dataset create {name} --question - <<< '{text}'"
        if "'" not in text
        else None,
        "saved": False,
    }


def _selected(caller: ToolCaller, question: Question) -> Answer:
    caller.need(READ)
    return caller.session.selections.ask(question)


def classes_of(
    caller: ToolCaller,
    question: Question,
    by: Grouping | None,
    dataset: str | None,
    split: str | None,
) -> dict[str, Any]:
    """Frames and pixel share of every class that occurs."""
    caller.need(READ)
    _need_datasets(caller, dataset)
    with within(caller.timeout_s):
        report = caller.session.statistics.report(
            question=question, dataset=dataset, split=split, by=by
        )
    body = report.model_dump(mode="json", exclude_none=True)
    for group in (body, *body.get("groups", ())):
        group["classes"] = [statistic for statistic in group["classes"] if statistic["frames"]]
    return body


def histogram_of(
    caller: ToolCaller,
    tags: Sequence[str],
    question: Question,
    axes: Mapping[str, Any],
    dataset: str | None,
    split: str | None,
) -> dict[str, Any]:
    """Frames by the values of one tag, or of two; `axes` as Statistics.histogram takes them."""
    caller.need(READ)
    _need_datasets(caller, dataset)
    if not 1 <= len(tags) <= 2:
        raise InvalidInput(f"{len(tags)} tags: expected one, or two for a table of both")
    with within(caller.timeout_s):
        counts = caller.session.statistics.histogram(
            *tags, **axes, question=question, dataset=dataset, split=split
        )
    return counts.model_dump(mode="json", exclude_none=True)


def gaps_of(
    caller: ToolCaller, dataset: str, split: str | None, at_least: int, scenes: bool
) -> dict[str, Any]:
    """Gaps of a dataset in comparison with the catalog."""
    caller.need(READ)
    report = caller.session.statistics.gaps(dataset, split=split, at_least=at_least, scenes=scenes)
    return report.model_dump(mode="json", exclude_none=True)


def dataset_of(caller: ToolCaller, name: str) -> Mapping[str, Any]:
    """A dataset without its frames."""
    caller.need(READ)
    dataset = caller.session.datasets.get(name)
    return {
        "name": f"{dataset.name}@{dataset.version}",
        "frames": dataset.frames,
        "splits": dataset.splits,
        "snapshot": dataset.snapshot,
        "question": dataset.question,
        "class_frames": {tag: count for tag, count in dataset.class_frames.items() if count},
        "report": dataset.report,
    }


def _need_datasets(caller: ToolCaller, dataset: str | None) -> None:
    """Datasets are not divided into collections: as on the routes, some callers may name none."""
    if dataset is not None:
        caller.need(READ)
