"""One axis of a histogram: which values of a tag are counted together.

Every frame has its bin: a tag's null, zero where asked for, what lies outside of the edges, and the
rest of its values have bins of their own, so that the counts add up to the frames.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from catalog.errors import InvalidInput, UnknownName
from catalog.lake.wide_names import FKEY_HASH
from query.statistics.histogram_report import Axis, AxisRequest, Bin
from query.statistics.population import POPULATION, Population

_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")
_FLOATS = ("FLOAT", "DOUBLE")


@dataclass(frozen=True)
class Extent:
    """The values that the bins of a tag depend on."""

    low: float | int | None = None
    """The least value that has no bin of its own; None where there is none, as of texts."""
    high: float | int | None = None
    frequent: tuple[str, ...] = ()
    """Texts and booleans: the most frequent values, one more than have bins."""


def make_axis(members: Population, request: AxisRequest) -> Axis:
    """The axis that is asked for, with bins for every value that the frames have.

    Raises:
        InvalidInput: Edges or scale for a tag that is no number, or a spread too wide for bins.
        UnknownName: There is no such tag, class or column.
    """
    by_title = {title.lower(): tag for tag, title in members.classes.items()}
    columns = {name: kind for name, kind in members.relation.columns.items() if name != FKEY_HASH}
    tag = by_title.get(request.tag.lower(), request.tag.lower())
    if tag not in columns:
        raise UnknownName("tag", request.tag, {**columns, **members.classes})
    kind = columns[tag]
    if not is_number(kind):
        if request.edges is not None or request.log or request.zero:
            raise InvalidInput(
                f"tag {tag} is of type {kind.lower()}: it has no edges, logarithm or zero; "
                "leave those out"
            )
        rows = members.ask(frequent_sql(tag, kind, POPULATION), (request.top + 1,))
        return axis_within(request, tag, kind, Extent(frequent=tuple(row["v"] for row in rows)))
    extent = Extent()
    if request.edges is None:
        low, high = extent_sql(request, tag, kind)
        row = members.ask(f"SELECT {low} AS low, {high} AS high FROM {POPULATION}")[0]
        extent = Extent(row["low"], row["high"])
    return axis_within(request, tag, kind, extent)


def is_number(kind: str) -> bool:
    """True when values of that DuckDB type have bins with edges."""
    return kind in (*_INTEGERS, *_FLOATS, "TIMESTAMP")


def extent_sql(request: AxisRequest, tag: str, kind: str) -> tuple[str, str]:
    """The aggregates that give the extent of a number."""
    if kind in _INTEGERS:
        return _extent_of_integers(request, f'"{tag}"')
    value = value_sql(tag, kind)
    conditions = [f"isfinite({value})"]
    if request.log:
        conditions.append(f"{value} > 0")
    elif request.zero:
        conditions.append(f"{value} <> 0")
    of_value = f"({value}) FILTER (WHERE {' AND '.join(conditions)})"
    return f"min{of_value}", f"max{of_value}"


def _extent_of_integers(request: AxisRequest, value: str) -> tuple[str, str]:
    """`extent_sql` of integers, without FILTER: that takes nine times as long."""
    low, high = f"min({value})", f"max({value})"
    if request.log:
        low, high = f"min(nullif(greatest({value}, 0), 0))", f"nullif(greatest({high}, 0), 0)"
    elif request.zero:
        low, high = f"min(nullif({value}, 0))", f"max(nullif({value}, 0))"
    return f"CAST({low} AS DOUBLE)", f"CAST({high} AS DOUBLE)"


def frequent_sql(tag: str, kind: str, relation: str) -> str:
    """The statement that gives the most frequent values of a text, as v; binds how many."""
    return (
        f"SELECT {value_sql(tag, kind)} AS v FROM {relation} "
        f'WHERE "{tag}" IS NOT NULL GROUP BY v ORDER BY count(*) DESC, v LIMIT ?'
    )


def axis_within(request: AxisRequest, tag: str, kind: str, extent: Extent) -> Axis:
    """The axis that is asked for, with bins for every value within an extent."""
    if not is_number(kind):
        return _category_axis(request, tag, kind, extent.frequent)
    zero = request.zero or request.log
    edges = list(request.edges or ()) or _edges(extent, request, tag, kind)
    bins = [Bin(kind="null")]
    if kind in _FLOATS:
        bins.append(Bin(kind="not_finite"))
    if zero:
        bins.append(Bin(kind="zero"))
    outside = request.edges is not None or request.log
    if outside:
        bins.append(Bin(kind="below"))
    bins += [Bin(kind="range", low=low, high=high) for low, high in pairwise(edges)]
    if outside:
        bins.append(Bin(kind="above"))
    scale: Literal["linear", "log", "edges", "time"] = "time" if kind == "TIMESTAMP" else "linear"
    if request.edges is not None:
        scale = "edges"
    elif request.log:
        scale = "log"
    return Axis(tag=tag, type=kind, scale=scale, edges=tuple(edges), bins=tuple(bins))


def _edges(extent: Extent, request: AxisRequest, tag: str, kind: str) -> list[int | float]:
    """Edges that hold every value that has no bin of its own; none where there is no such value."""
    low, high = extent.low, extent.high
    if low is None or high is None:
        return []
    if kind in _INTEGERS and not request.log and high - low < request.bins:
        return list(range(int(low), int(high) + 2))
    if low == high:
        return [low, high]
    spaced = np.geomspace if request.log else np.linspace
    with np.errstate(over="ignore", invalid="ignore"):
        edges = spaced(low, high, request.bins + 1)
    if not np.all(np.isfinite(edges)):
        raise InvalidInput(
            f"tag {tag} goes from {low:g} to {high:g}, too far for bins of one width; give edges"
        )
    # Fewer where the numbers between are fewer than the bins.
    return np.unique(edges).tolist()  # type: ignore[no-any-return]


def _category_axis(request: AxisRequest, tag: str, kind: str, frequent: Sequence[str]) -> Axis:
    bins = [Bin(kind="null")]
    bins += [Bin(kind="value", value=value) for value in frequent[: request.top]]
    if len(frequent) > request.top:
        bins.append(Bin(kind="other"))
    return Axis(tag=tag, type=kind, scale="categories", edges=(), bins=tuple(bins))


def value_sql(tag: str, kind: str) -> str:
    """A tag's value as bins take it: a DOUBLE or a text."""
    if kind == "TIMESTAMP":
        return f'epoch("{tag}")'
    return f'CAST("{tag}" AS {"DOUBLE" if kind in (*_INTEGERS, *_FLOATS) else "VARCHAR"})'


def position_sql(axis: Axis, column: str, values: list[object]) -> str:
    """The position of a value's bin among the axis's bins, as SQL; appends what it binds."""
    kinds = [bin_.kind for bin_ in axis.bins]
    whens = [f"WHEN {column} IS NULL THEN {kinds.index('null')}"]
    if axis.scale == "categories":
        for position, bin_ in enumerate(axis.bins):
            if bin_.kind == "value":
                whens.append(f"WHEN {column} = ? THEN {position}")
                values.append(bin_.value)
        return f"CASE {' '.join(whens)} ELSE {len(kinds) - 1} END"
    for kind, condition in (
        ("not_finite", f"NOT isfinite({column})"),
        ("zero", f"{column} = 0"),
    ):
        if kind in kinds:
            whens.append(f"WHEN {condition} THEN {kinds.index(kind)}")
    for kind, sign, edge in (("below", "<", 0), ("above", ">", -1)):
        if kind in kinds and axis.edges:
            whens.append(f"WHEN {column} {sign} ? THEN {kinds.index(kind)}")
            values.append(axis.edges[edge])
    if not axis.edges:
        # Only a logarithmic axis without a number above 0 has values left: those below 0.
        return f"CASE {' '.join(whens)} ELSE {kinds.index('below') if 'below' in kinds else 0} END"
    within = _search(column, axis.edges, kinds.index("range"), 0, len(axis.edges) - 1, values)
    return f"CASE {' '.join(whens)} ELSE {within} END"


def _search(
    column: str,
    edges: Sequence[int | float],
    first: int,
    low: int,
    high: int,
    values: list[object],
) -> str:
    """The bin's position as nested CASEs that halve the edges; the first bin's is ``first``."""
    if high - low == 1:
        return str(first + low)
    middle = (low + high) // 2
    values.append(edges[middle])
    left = _search(column, edges, first, low, middle, values)
    right = _search(column, edges, first, middle, high, values)
    return f"CASE WHEN {column} < ? THEN {left} ELSE {right} END"
