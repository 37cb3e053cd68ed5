"""Facets: every tag's histogram under all conditions but those on itself, in one pass.

In memory the frames' bins are found once for each snapshot (`FacetColumns`). A question is then one
statement, which says of every frame which conditions it fulfils, and a count of bytes.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from catalog.errors import InvalidInput, SqlError, UnknownName
from catalog.lake.catalog import Catalog
from catalog.lake.frames_relation import FramesRelation
from catalog.lake.group_tags import read_from
from catalog.lake.schema import FRAME_TAGS_COLUMNS, LABELLED
from catalog.lake.snapshot import Facts, Snapshot
from catalog.lake.statement_watch import Cancellation, cancelled_by, current
from query.db2.errors import in_db2s_words
from query.question.condition import (
    CameraIn,
    Group,
    Has,
    Leaf,
    PixelRange,
    SceneIn,
    ShareRange,
    TagIs,
    Without,
    leaves,
)
from query.question.conditions import question_where, relation_for, vocabulary_of
from query.question.of_model import asking, in_names_of
from query.question.question import Question
from query.question.vocabulary import Vocabulary
from query.run.run_sql import execute
from query.statistics.bin_positions import Positions, positions_on
from query.statistics.facet_columns import Counts, FacetColumns, Mask, RowGroups
from query.statistics.facet_report import Facet, FacetReport, FacetSteps
from query.statistics.histogram_axis import (
    Extent,
    axis_within,
    extent_sql,
    frequent_sql,
    is_number,
    value_sql,
)
from query.statistics.histogram_report import Axis, AxisRequest
from query.statistics.population import Frames

Of = TypeVar("Of")

_BINS = 24
"""Bins of a number: with those of nulls, zeros and outliers, three facets make one code."""

_TOP = 200
"""Texts with a bin of their own: every camera, and the scenes of a large catalog's best part."""

_WITHOUT = frozenset(name for name in FRAME_TAGS_COLUMNS if name.endswith("_file"))
"""Tags that name a file of each frame."""

_ROWS_AT_ONCE = 122_880
"""Rows whose values are in memory at once while their bins are found."""

MOST_STEPS = _BINS
"""Of a slider: it has a position for each bin and one for zeros, and the open one is no step."""

_LISTED = "listed_frames"
_ASKED = "facets were asked for"
_LOOK_S = 0.05


def facets(
    store: Catalog, frames: Frames | None = None, tags: Sequence[str] | None = None
) -> FacetReport:
    """Every tag's histogram under a question's conditions, and how many frames answer it.

    Args:
        frames: Which frames; all of the newest snapshot when None. Those of a dataset count as all.
        tags: Only these tags' or classes'; those of every tag when None.
    """
    with _answered(store, frames or Frames(), tags) as answer:
        columns = answer.columns
        counts = columns.count(answer.matching, _go_on)
        for tag, facet in answer.own_facets:
            _go_on()
            failing = columns.count_one(facet, answer.failing_alone(tag))
            counts[facet] = counts[facet] + failing
        return answer.report(counts)


def facets_by_step(
    store: Catalog, frames: Frames, tag: str, steps: Sequence[Question]
) -> FacetSteps:
    """The facets under a question, and under each position of a slider that narrows it.

    Args:
        tag: The facet that has the slider.
        steps: Of each position but the open one, from that on, the condition that it adds to the
            question. A frame fulfils a position where it fulfils its step and all before it.

    Raises:
        InvalidInput: There are more than MOST_STEPS, or they ask of other frames than the question.
        UnknownName: There is no such facet.
    """
    if len(steps) > MOST_STEPS:
        raise InvalidInput(f"{len(steps)} steps of a slider, expected at most {MOST_STEPS}")
    with _answered(store, frames, None, steps) as answer:
        columns, positions = answer.columns, len(steps) + 1
        if tag not in answer.indices:
            raise UnknownName("tag", tag, answer.indices)
        matching = RowGroups.of(answer.matching, answer.steps, positions)
        counts = columns.count_by(matching, _go_on)
        for own, facet in answer.own_facets:
            _go_on()
            failing = RowGroups.of(answer.failing_alone(own), answer.steps, positions)
            counts[facet] = counts[facet] + columns.count_one_by(facet, failing)
        # The slider's own histogram is under all other conditions, wherever it stands.
        of_slider = counts[answer.indices[tag]]
        of_slider[-1] = of_slider.sum(axis=0)
        of_slider[:-1] = 0
        report = answer.report([of_facet.sum(axis=0) for of_facet in counts])
        by_position = [of_facet.tolist() for of_facet in counts]
        return FacetSteps(report, matching.counts.tolist(), by_position)


def prepare(store: Catalog, before: Facts | None) -> None:
    """Find the bins of the snapshot in memory, before somebody waits for them.

    Args:
        store: The catalog, with every row.
        before: What was known of the snapshot that was in memory before: where nobody asked that
            one for facets, nobody is going to ask this one soon. None where there was none.
    """
    if before is not None and _ASKED not in before:
        return
    with store.reading() as snapshot:
        if snapshot.layout.in_memory:
            reading = _Reading(snapshot, Question())
            reading.columns_of(_facet_tags(snapshot, None), ended_by=current())


@dataclass
class _Parts:
    """A question's conditions, by the facets that they are on."""

    own: dict[str, list[Leaf | Group]] = field(default_factory=dict)
    """Tag of a facet -> the conditions on it alone."""
    rest: list[Leaf | Group] = field(default_factory=list)
    where: str | None = None
    """The user's own SQL."""
    listed: bool = False
    """Only the frames of a list are there at all."""

    @staticmethod
    def of(question: Question, vocabulary: Vocabulary, tags: Iterable[str]) -> "_Parts":
        """The parts of a question."""
        parts, facet_tags = _Parts(where=question.where), set(tags)
        for condition in question.conditions():
            on = {_tag_of(leaf, vocabulary) for leaf in leaves([condition])}
            tag = on.pop() if len(on) == 1 else ""
            conditions = parts.own.setdefault(tag, []) if tag in facet_tags else parts.rest
            conditions.append(condition)
        return parts

    def questions(self) -> list[Question]:
        """A question for each facet with conditions, then one for all others if there are any."""
        questions = [_all_of(conditions) for conditions in self.own.values()]
        if self.rest or self.where is not None:
            questions.append(_all_of(self.rest).model_copy(update={"where": self.where}))
        return questions


def _all_of(conditions: Sequence[Leaf | Group]) -> Question:
    if len(conditions) > 1:
        return Question(condition=Group(kind="all", of=tuple(conditions)))
    return Question(condition=conditions[0] if conditions else None)


def _tag_of(leaf: Leaf, vocabulary: Vocabulary) -> str:
    """The tag that a condition is on."""
    if isinstance(leaf, PixelRange):
        return vocabulary.numeric_column(leaf.tag).name
    if isinstance(leaf, ShareRange | Has | Without):
        return vocabulary.class_tag(leaf.tag).name
    if isinstance(leaf, TagIs):
        return vocabulary.tag(leaf.tag).name
    return leaf.kind if isinstance(leaf, CameraIn | SceneIn) else "scene"


def _facet_tags(
    snapshot: Snapshot,
    tags: Sequence[str] | None,
) -> tuple[str, ...]:
    """The facets' tags: camera and scene, the classes in class order, then the others."""
    present = [tag for tag in snapshot.tags if tag not in _WITHOUT]
    first = [tag for tag in ("camera", "scene") if tag in present]
    classes = snapshot.classes_and_groups
    every = tuple(dict.fromkeys([*first, *classes, *present]))
    if tags is None:
        return every
    titles = {title.lower(): tag for tag, title in classes.items()}
    requested = {titles.get(tag.lower(), tag.lower()): tag for tag in tags}
    for tag, name in requested.items():
        if tag not in every:
            raise UnknownName("tag", name, {*every, *classes.values()})
    return tuple(tag for tag in every if tag in requested)


@dataclass(frozen=True)
class _Answer:
    """The facets' bins, and which frames fulfil which conditions; masks are (frames,) bool."""

    snapshot: Snapshot
    note: str
    """Why the frames were not counted in memory; empty where they were."""
    parts: _Parts
    columns: FacetColumns
    own: dict[str, Mask]
    """Tag of a facet -> frames that fulfil the conditions on it alone."""
    listed: Mask
    """Frames that are there at all."""
    rest: Mask
    """Those of them that fulfil the conditions that are on no facet alone."""
    steps: Positions
    """(frames,) uint8: the steps of a slider that each fulfils, up to the first that it fails."""

    @cached_property
    def matching(self) -> Mask:
        """Frames that fulfil every condition."""
        matching: Mask = self.rest & (self._failed == 0)
        return matching

    def failing_alone(self, tag: str) -> Mask:
        """Frames that fail the conditions on a facet, and no others."""
        failing: Mask = self.rest & ~self.own[tag] & (self._failed == 1)
        return failing

    @cached_property
    def _failed(self) -> npt.NDArray[np.uint8]:
        """On how many facets each frame fails the conditions."""
        failed = np.zeros(self.columns.frames, np.uint8)
        for mask in self.own.values():
            failed += ~mask
        return failed

    @cached_property
    def indices(self) -> dict[str, int]:
        """The facets' tags, each with its place."""
        return {axis.tag: index for index, axis in enumerate(self.columns.axes)}

    @property
    def own_facets(self) -> Iterator[tuple[str, int]]:
        """Tags and places of the facets with conditions on them alone."""
        return ((tag, self.indices[tag]) for tag in self.own if tag in self.indices)

    def report(self, counts: Sequence[Counts]) -> FacetReport:
        """The report of each facet's counts."""
        listed, columns, names = self.parts.listed, self.columns, self.snapshot.classes
        of_all = columns.count(self.listed, _go_on) if listed else columns.totals()
        return FacetReport(
            snapshot=self.snapshot.number,
            frames=int(np.count_nonzero(self.listed)),
            matching=int(np.count_nonzero(self.matching)),
            in_memory=self.snapshot.layout.in_memory,
            note=self.note,
            facets=tuple(
                _facet(axis, names.get(axis.tag, axis.tag), self.parts, all_frames, counted)
                for axis, all_frames, counted in zip(columns.axes, of_all, counts, strict=True)
            ),
        )


@contextmanager
def _answered(
    store: Catalog, frames: Frames, tags: Sequence[str] | None, steps: Sequence[Question] = ()
) -> Iterator[_Answer]:
    """The answer to a question, while its snapshot is read."""
    reading = asking(store, frames.question, frames.at)
    with reading as (snapshot, question), ExitStack() as stack:
        vocabulary = vocabulary_of(snapshot)
        facet_tags = _facet_tags(snapshot, tags)
        parts = _Parts.of(question, vocabulary, facet_tags)
        if frames.fkeys is not None:
            stack.enter_context(snapshot.with_table(_LISTED, pa.table({"fkey": frames.fkeys})))
            parts.listed = True
        # The model of the question is that of each step.
        model = {"model": frames.question.model}
        narrower = [in_names_of(snapshot, step.model_copy(update=model)) for step in steps]
        columns, masks = _read(snapshot, question, facet_tags, parts, narrower)
        everyone = np.ones(columns.frames, np.bool_)
        fulfilled = (masks.pop() if steps else everyone).view(np.uint8)
        listed = masks.pop() if parts.listed else everyone
        own = dict(zip(parts.own, masks, strict=False))
        rest = listed & masks[-1] if len(masks) > len(own) else listed
        note = _note(store, snapshot, question)
        yield _Answer(snapshot, note, parts, columns, own, listed, rest, fulfilled)


def _read(
    snapshot: Snapshot,
    question: Question,
    tags: Sequence[str],
    parts: _Parts,
    steps: Sequence[Question],
) -> tuple[FacetColumns, list[Mask]]:
    """The facets' bins, and for each part of the question which frames fulfil it.

    Behind these, where there are steps, is how many of them each frame fulfils.
    """
    reading = _Reading(snapshot, question)
    columns = None
    if snapshot.layout.in_memory:
        snapshot.once(_ASKED, lambda: True)
        columns = reading.columns_of(tags, ended_by=Cancellation())
    relation = relation_for(snapshot, question)
    masks: dict[int, Mask] = {}
    selected, values = [], []
    for number, sub_question in enumerate(parts.questions()):
        condition, bound = question_where(sub_question, relation, snapshot)
        mask = None if columns is None else _by_bins(columns, sub_question)
        if mask is not None:
            masks[number] = mask
            continue
        # A condition on a value that is missing is neither true nor false.
        selected.append(f"coalesce(({condition}), false) AS m{number}")
        values += bound
    if parts.listed:
        selected.append(f"fkey IN (SELECT fkey FROM {_LISTED}) AS listed")
    if steps:
        selected.append(f"{_steps_sql(snapshot, question, steps)} AS steps")
    if columns is None:
        columns, computed = reading.columns(reading.axes(tags), selected, values)
    else:
        computed = reading.masks(selected, values) if selected else []
    unmasked = iter(computed)
    count = len(masks) + len(computed)
    return columns, [masks[n] if n in masks else next(unmasked) for n in range(count)]


def _steps_sql(snapshot: Snapshot, question: Question, steps: Sequence[Question]) -> str:
    """How many of the steps a frame fulfils, up to the first that it fails: a UTINYINT."""
    relation = relation_for(snapshot, question)
    whens = []
    for number, step in enumerate(steps):
        if step.decides_on_labels and not question.decides_on_labels:
            raise InvalidInput(
                f"steps on the tag {LABELLED} ask of other frames than the question; ask each alone"
            )
        condition, _ = question_where(step, relation, snapshot)
        whens.append(f"WHEN NOT coalesce(({condition}), false) THEN {number}")
    return f"CAST(CASE {' '.join(whens)} ELSE {len(steps)} END AS UTINYINT)"


def _by_bins(columns: FacetColumns, question: Question) -> Mask | None:
    """A mask of the frames of some cameras or scenes, where each of those has a bin; None else."""
    condition = question.condition
    if question.where is not None or not isinstance(condition, CameraIn | SceneIn):
        return None
    for facet, axis in enumerate(columns.axes):
        if axis.tag == condition.kind:
            bins = {bin_.value: index for index, bin_ in enumerate(axis.bins) if bin_.value}
            if bins.keys() >= set(condition.names):
                return columns.in_bins(facet, [bins[name] for name in condition.names])
    return None


@dataclass(frozen=True)
class _Reading:
    """The frames of a snapshot, as facets read them: labelled ones, or all that there are."""

    snapshot: Snapshot
    question: Question

    def masks(self, selected: Sequence[str], values: Sequence[object]) -> list[Mask]:
        """Conditions as columns of every frame, in an order that is always the same in memory."""
        relation = relation_for(self.snapshot, self.question)
        listed = ", ".join(selected)
        rows = execute(
            self.snapshot,
            f"WITH frames AS ({relation.sql_for(listed)}) SELECT {listed} FROM frames",
            values,
        )
        return [np.asarray(mask) for mask in rows.columns]

    def columns(
        self, axes: Sequence[Axis], selected: Sequence[str] = (), values: Sequence[object] = ()
    ) -> tuple[FacetColumns, list[Mask]]:
        """The bins of those axes, and conditions, of every frame in one order."""
        # In one statement where conditions have to be of the same frames, in the same order.
        groups = [[*axes]] if selected else self._by_table(axes, lambda axis: axis.tag)
        joined, masks = dict[str, Positions](), list[Mask]()
        for group in groups:
            positions, masks = self._positions(group, selected, values)
            joined |= positions
        return FacetColumns.of(axes, [joined[axis.tag] for axis in axes]), masks

    def _positions(
        self, axes: Sequence[Axis], selected: Sequence[str], values: Sequence[object]
    ) -> tuple[dict[str, Positions], list[Mask]]:
        """The positions of those axes' bins by tag, and conditions, by one statement."""
        relation = relation_for(self.snapshot, self.question)
        listed = ", ".join([*(_value(relation, axis) for axis in axes), *selected])
        statement = f"WITH frames AS ({relation.sql_for(listed)}) SELECT {listed} FROM frames"
        blocks: list[list[Positions]] = [[] for _ in axes]
        positions_by_axis = [positions_on(axis) for axis in axes]
        masks: list[list[Mask]] = [[] for _ in selected]
        with in_db2s_words(), self.snapshot.watched() as watch:
            with watch.errors():
                rows = self.snapshot.execute(statement, [*values] or None)
                reader = rows.to_arrow_reader(_ROWS_AT_ONCE)
            for batch in watch.read(reader):
                for index, positions in enumerate(positions_by_axis):
                    blocks[index].append(positions(batch.column(index)))
                for index, mask in enumerate(masks, len(axes)):
                    mask.append(batch.column(index).to_numpy(zero_copy_only=False))
        return {
            axis.tag: np.concatenate([np.empty(0, np.uint8), *parts])
            for axis, parts in zip(axes, blocks, strict=True)
        }, [np.concatenate([np.empty(0, np.bool_), *parts]) for parts in masks]

    def _by_table(self, each: Sequence[Of], tag: Callable[[Of], str]) -> list[list[Of]]:
        """Groups that a statement reads at once: of files each of one table, all in memory.

        At 1,000,000 frames the join of two tables costs more than all the rest.
        """
        if self.snapshot.layout.in_memory:
            return [[*each]] if each else []
        tags = relation_for(self.snapshot, self.question).tags
        groups: dict[str, list[Of]] = {}
        for one in each:
            groups.setdefault(read_from(tags[tag(one)]), []).append(one)
        return [*groups.values()]

    def columns_of(self, tags: Sequence[str], ended_by: Cancellation) -> FacetColumns:
        """The bins of those tags, computed once for a snapshot.

        Args:
            ended_by: Ends it. Bins are found to the end when the client that asked has left
                meanwhile: at 1,000,000 frames that takes a second, and a user who drags a
                range leaves sooner.
        """
        name = f"bins {self.question.decides_on_labels} {' '.join(tags)}"
        lock: threading.Lock = self.snapshot.once(f"making {name}", threading.Lock)
        while not lock.acquire(timeout=_LOOK_S):
            _go_on()
        try:
            with cancelled_by(ended_by):
                return self.snapshot.once(name, lambda: self.columns(self.axes(tags))[0])
        finally:
            lock.release()

    def axes(self, tags: Sequence[str]) -> list[Axis]:
        """The bins of those tags; a number that spreads too far for bins has no facet."""
        kinds = relation_for(self.snapshot, self.question).columns
        counted = frozenset((*self.snapshot.pixel_tags, *self.snapshot.groups))
        requests = [AxisRequest(tag=tag, bins=_BINS, top=_TOP, log=tag in counted) for tag in tags]
        extents = self._extents([one for one in requests if is_number(kinds[one.tag])])
        axes = []
        for request in requests:
            kind = kinds[request.tag]
            extent = extents.get(request.tag) or self._frequent(request, kind)
            try:
                axes.append(axis_within(request, request.tag, kind, extent))
            except InvalidInput:
                continue
        return axes

    def _extents(self, requests: Sequence[AxisRequest]) -> dict[str, Extent]:
        """Least and greatest value of each number."""
        groups = self._by_table(requests, lambda request: request.tag)
        return {tag: extent for group in groups for tag, extent in self._extents_of(group).items()}

    def _extents_of(self, requests: Sequence[AxisRequest]) -> dict[str, Extent]:
        """`_extents`, in one statement."""
        relation = relation_for(self.snapshot, self.question)
        selected = []
        for number, request in enumerate(requests):
            low, high = extent_sql(request, request.tag, relation.columns[request.tag])
            selected += [f"{low} AS low{number}", f"{high} AS high{number}"]
        listed = ", ".join(selected)
        statement = f"WITH frames AS ({relation.sql_for(listed)}) SELECT {listed} FROM frames"
        row = execute(self.snapshot, statement).to_pylist()[0]
        return {
            request.tag: Extent(row[f"low{number}"], row[f"high{number}"])
            for number, request in enumerate(requests)
        }

    def _frequent(self, request: AxisRequest, kind: str) -> Extent:
        relation = relation_for(self.snapshot, self.question)
        statement = frequent_sql(request.tag, kind, "frames")
        rows = execute(
            self.snapshot,
            f"WITH frames AS ({relation.sql_for(statement)}) {statement}",
            [request.top + 1],
        )
        return Extent(frequent=tuple(rows["v"].to_pylist()))


def _value(relation: FramesRelation, axis: Axis) -> str:
    """A tag's value for SELECT, as `positions` takes it."""
    if axis.type == "VARCHAR":
        return relation.encoded(axis.tag)
    if axis.type in ("BOOLEAN", "TIMESTAMP"):
        return f'{value_sql(axis.tag, axis.type)} AS "{axis.tag}"'
    return f'"{axis.tag}"'


def _facet(axis: Axis, name: str, parts: _Parts, of_all: Counts, counts: Counts) -> Facet:
    # Made without a look at every bin: those of an axis were checked when it was made.
    return Facet.model_construct(
        tag=axis.tag,
        type=axis.type,
        scale=axis.scale,
        edges=axis.edges,
        bins=axis.bins,
        name=name,
        asked=axis.tag in parts.own,
        of_all=tuple(of_all.tolist()),
        counts=tuple(counts.tolist()),
    )


def _note(store: Catalog, snapshot: Snapshot, question: Question) -> str:
    """Why the frames were not counted in memory."""
    if snapshot.layout.in_memory:
        return ""
    newest = store.snapshot()
    if snapshot.number != newest:
        return f"snapshot {snapshot.number} is read from files: memory holds the newest, {newest}"
    if question.where is not None:
        return "conditions on what a model took for what are asked of files"
    return "the newest snapshot is not in memory, or not yet"


def _go_on() -> None:
    if current().cancelled:
        raise SqlError.ended("on request")
