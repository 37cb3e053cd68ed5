"""Gaps: classes, cameras and scenes of the catalog that a dataset lacks, each with its question."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from catalog.lake.catalog import Catalog
from query.question.label_range import LabelRange
from query.question.question import Question
from query.statistics.gap_report import Gap, GapKind, GapReport
from query.statistics.population import POPULATION, Frames, Population, population


@dataclass(frozen=True)
class Content:
    """The frames of a dataset, or of one of its splits, and their counts."""

    dataset: str
    """NAME@VERSION."""
    split: str | None
    """The split; None for the whole dataset."""
    frames: int
    fkeys: pa.ChunkedArray
    """Every frame of the dataset, those of other splits included."""
    counts: Mapping[GapKind, Mapping[str, int]]
    """Frames by value, of each kind: tags of the classes and class groups that the dataset's labels
    have, cameras, scenes.
    """


def find_gaps(
    store: Catalog,
    content: Content,
    *,
    at_least: int = 1,
    kinds: Sequence[GapKind] = ("class", "camera"),
    at: int | None = None,
) -> GapReport:
    """Compare a dataset with the catalog.

    Args:
        at_least: Frames wanted of each class, camera and scene.
    """
    with population(store, Frames(at=at)) as members:
        gaps = [gap for kind in kinds for gap in _gaps(members, content, kind, at_least)]
        gaps.sort(key=lambda gap: (gap.new_frames == 0, kinds.index(gap.kind), gap.frames))
        return GapReport(
            dataset=content.dataset,
            split=content.split,
            at_least=at_least,
            frames=content.frames,
            snapshot=members.snapshot,
            gaps=tuple(gaps),
            not_compared=tuple(
                tag
                for tag in (members.classes_and_groups if "class" in kinds else ())
                if tag not in content.counts["class"]
            ),
        )


def _gaps(
    members: Population,
    content: Content,
    kind: GapKind,
    at_least: int,
) -> Iterator[Gap]:
    contained = content.counts[kind]
    with members.with_fkeys(content.fkeys) as listed:
        if kind == "class":
            # A class that the dataset's labels do not have is unknown in them, and no gap.
            compared = [tag for tag in members.classes_and_groups if tag in contained]
            known = _classes(members, listed, compared)
        else:
            known = _groups(members, kind, listed)
    for value in {**known, **contained}:
        frames, (catalog_frames, new_frames) = contained.get(value, 0), known.get(value, (0, 0))
        if frames >= at_least:
            continue
        name = members.classes_and_groups.get(value, value) if kind == "class" else value
        gap = Gap(
            kind=kind,
            value=value,
            name=name,
            frames=frames,
            catalog_frames=catalog_frames,
            new_frames=new_frames,
            sentence=_sentence(
                content,
                at_least,
                name if kind == "class" else f"{kind} {name}",
                frames,
                catalog_frames,
                new_frames,
            ),
        )
        if not catalog_frames:
            yield gap
            continue
        question, options = _question(kind, value, members.snapshot)
        command = ["framesift", "select", *options, "--at", str(members.snapshot)]
        yield gap.model_copy(
            update={
                "question": question.model_dump(mode="json", exclude_defaults=True),
                "command": shlex.join(command),
            }
        )


_Known = dict[str, tuple[int, int]]
"""Value -> frames of the catalog, and those of them that are not in the dataset."""


def _classes(members: Population, listed: str, tags: Sequence[str]) -> _Known:
    columns = "".join(f', "{tag}"' for tag in tags)
    counts = "".join(
        f', coalesce(sum(("{tag}" > 0)::INTEGER), 0)::BIGINT AS frames_{index}'
        f', coalesce(sum(("{tag}" > 0 AND "is new")::INTEGER), 0)::BIGINT AS new_{index}'
        for index, tag in enumerate(tags)
    )
    row = members.ask(
        f"SELECT count(*){counts} FROM"
        f' (SELECT fkey NOT IN (SELECT fkey FROM {listed}) AS "is new"{columns} FROM {POPULATION})'
    )[0]
    return {tag: (row[f"frames_{index}"], row[f"new_{index}"]) for index, tag in enumerate(tags)}


def _groups(members: Population, kind: GapKind, listed: str) -> _Known:
    rows = members.ask(
        f'SELECT "{kind}" AS value, count(*) AS frames,'
        f" sum((fkey NOT IN (SELECT fkey FROM {listed}))::INTEGER)::BIGINT AS new"
        f" FROM {POPULATION} WHERE {kind} IS NOT NULL GROUP BY {kind} ORDER BY {kind}"
    )
    return {row["value"]: (row["frames"], row["new"]) for row in rows}


def _question(kind: GapKind, value: str, snapshot: int) -> tuple[Question, tuple[str, str]]:
    """The question that finds the frames, and the option of `framesift select` that asks it."""
    if kind == "class":
        pixels = LabelRange(tag=value, lowest=1)
        return Question(ranges=(pixels,), snapshot=snapshot), ("--range", pixels.to_text())
    if kind == "camera":
        return Question(cameras=(value,), snapshot=snapshot), ("--camera", value)
    return Question(scenes=(value,), snapshot=snapshot), ("--scene", value)


def _sentence(
    content: Content, at_least: int, name: str, frames: int, catalog_frames: int, new_frames: int
) -> str:
    where = f"split {content.split} of {content.dataset}" if content.split else content.dataset
    lack = f"no {name} in {where}"
    if frames:
        lack = f"{name} in {frames:,} of {content.frames:,} frames of {where}, wanted {at_least:,}"
    if not catalog_frames:
        return f"{lack}; the catalog has none{'' if frames else ' either'}"
    have = "1 frame of the catalog has it"
    if catalog_frames > 1:
        have = f"{catalog_frames:,} frames of the catalog have it"
    if new_frames == catalog_frames:
        return f"{lack}; {have}"
    present = f"{catalog_frames - new_frames:,} of them" if new_frames else "all"
    return f"{lack}; {have}, {present} in the dataset already"
