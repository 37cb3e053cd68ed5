"""Frames, pixels and shares of the classes in a population of frames, in one pass over it."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from catalog.lake.catalog import Catalog
from query.statistics.class_quantiles import PERCENTS, frame_quantiles
from query.statistics.class_report import (
    ClassGroup,
    ClassReport,
    ClassStatistics,
    Grouping,
    Number,
    Quantiles,
)
from query.statistics.population import (
    POPULATION,
    Frames,
    Population,
    population,
    refuse_unlabelled,
)

_PIXELS = '"frame pixels"'


def class_report(
    store: Catalog,
    frames: Frames | None = None,
    *,
    by: Grouping | None = None,
    quantiles: bool = False,
) -> ClassReport:
    """Frames, pixels and shares of every class and class group, by group, and with quantiles.

    Args:
        frames: Which frames; all of the newest snapshot when None.
        by: Also for each camera or scene.
    """
    with population(store, frames or Frames()) as members:
        refuse_unlabelled(members, (frames or Frames()).question, "class statistics")
        names = members.classes_and_groups
        rows = partial(_rows, members, list(names), by, quantiles)
        if not by and not quantiles:
            rows = partial(members.once, f"class measures {', '.join(names)}", rows)
        total, *parts = (_group(row, names) for row in rows())
        return ClassReport(
            snapshot=members.snapshot,
            frames=total.frames,
            pixels=total.pixels,
            classes=total.classes,
            by=by,
            groups=tuple(parts) if by else None,
        )


def _rows(
    members: Population, tags: Sequence[str], by: Grouping | None, quantiles: bool
) -> list[dict[str, Any]]:
    """One row for all frames, then one for each group."""
    measures = {
        "frames": "count(*)",
        "pixels": f"coalesce(sum({_PIXELS}), 0)::BIGINT",
    }
    for index, tag in enumerate(tags):
        # A product in place of FILTER takes a ninth of the time.
        measures |= {
            f"known_{index}": f'count("{tag}")',
            f"frames_{index}": f'coalesce(sum(("{tag}" > 0)::INTEGER), 0)::BIGINT',
            f"pixels_{index}": f'coalesce(sum("{tag}"), 0)::BIGINT',
            f"around_{index}": f'coalesce(sum({_PIXELS} * ("{tag}" > 0)::INTEGER), 0)::BIGINT',
        }
    rows = _sums(members, measures, by)
    # Frames of another data set have no such class: it is no share of their pixels.
    pixels_of_known = {
        f"of_{index}": f'coalesce(sum({_PIXELS} * ("{tag}" IS NOT NULL)::INTEGER), 0)::BIGINT'
        for index, tag in enumerate(tags)
        if rows[0][f"known_{index}"] < rows[0]["frames"]
    }
    if pixels_of_known:
        for row, more in zip(rows, _sums(members, pixels_of_known, by), strict=True):
            row.update(more)
    if quantiles:
        columns = ", ".join([_PIXELS, *map(_quoted, [*tags, *([by] if by else [])])])
        frames = members.table(f"SELECT {columns} FROM {_sized(members, by)}")
        of_all, of_groups = frame_quantiles(frames, tags, _PIXELS.strip('"'), by)
        statistics = [of_all, *(of_groups[row["value"]] for row in rows[1:])]
        for row, its in zip(rows, statistics, strict=True):
            for index in range(len(tags)):
                row[f"pixel_quantiles_{index}"] = its.pixels[index]
                row[f"share_quantiles_{index}"] = its.shares[index]
    return rows


def _sums(
    members: Population, measures: Mapping[str, str], by: Grouping | None
) -> list[dict[str, Any]]:
    """Measures, each a sum, of all frames, then of each group."""
    body = ", ".join(f"{value} AS {name}" for name, value in measures.items())
    if by is None:
        return members.ask(f"SELECT {body} FROM {_sized(members, by)}")
    groups = members.ask(
        f"SELECT {by} AS value, {body} FROM {_sized(members, by)} GROUP BY {by} ORDER BY {by}"
    )
    # No frame need be counted twice.
    return [{name: sum(group[name] for group in groups) for name in measures}, *groups]


def _sized(members: Population, by: Grouping | None) -> str:
    """The frames' counts of pixels, the number of all pixels of each, and what they are grouped by.

    These are the pixels of its classes and those of none; those of a class group are its classes'.
    No tag has a blank in its name.
    """
    counted = [_quoted(tag) for tag in members.pixel_tags]
    pixels = " + ".join(["0::BIGINT", *(f"coalesce({tag}, 0)" for tag in counted)])
    groups = map(_quoted, members.group_tags)
    columns = ", ".join([*counted, *groups, *([_quoted(by)] if by else [])])
    return f"(SELECT {columns}, {pixels} AS {_PIXELS} FROM {POPULATION})"


def _quoted(tag: str) -> str:
    return f'"{tag}"'


def _group(row: dict[str, Any], names: Mapping[str, str]) -> ClassGroup:
    classes = []
    for index, (tag, name) in enumerate(names.items()):
        frames, pixels, around = (row[f"{key}_{index}"] for key in ("frames", "pixels", "around"))
        classes.append(
            ClassStatistics(
                tag=tag,
                name=name,
                frames=frames,
                pixels=pixels,
                share=_share(pixels, row.get(f"of_{index}", row["pixels"])),
                share_where_present=_share(pixels, around),
                presence=_share(frames, row[f"known_{index}"]),
                pixel_quantiles=_quantiles(Quantiles[int], row.get(f"pixel_quantiles_{index}")),
                share_quantiles=_quantiles(Quantiles[float], row.get(f"share_quantiles_{index}")),
            )
        )
    return ClassGroup(
        value=row.get("value"), frames=row["frames"], pixels=row["pixels"], classes=tuple(classes)
    )


def _quantiles(
    kind: type[Quantiles[Number]], values: Sequence[Number] | None
) -> Quantiles[Number] | None:
    return kind(**dict(zip(PERCENTS, values, strict=True))) if values else None


def _share(count: int, total: int) -> float:
    return count / total if total else 0.0
