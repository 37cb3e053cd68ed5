"""Generated statements against the same question answered in plain Python."""

from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog.store import CatalogStore
from query.frames.select_frames import select_frames
from query.question.label_range import LabelRange
from query.question.question import Question
from tests.query.catalogs import DrawnFrame, drawn_frames, listed_files, rows

MANY = settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
FEWER = settings(MANY, max_examples=40)
FRAMES = drawn_frames()
TAGS = sorted(FRAMES[0].tags)
_HOLDS = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@st.composite
def conditions(draw: st.DrawFn) -> tuple[str, str, int]:
    """A tag, a comparison and a number that some frame has, or nearly."""
    tag = draw(st.sampled_from(TAGS))
    bound = draw(st.sampled_from([frame.tags[tag] for frame in FRAMES])) + draw(st.integers(-1, 1))
    return tag, draw(st.sampled_from(sorted(_HOLDS))), bound


def holding(frames: list[DrawnFrame], bounds: list[tuple[str, str, int]]) -> list[DrawnFrame]:
    """The frames for which every condition holds."""
    return [
        frame
        for frame in frames
        if all(_HOLDS[sign](frame.tags[tag], n) for tag, sign, n in bounds)
    ]


def letters(text: str, upper: bool) -> str:
    """The statement in capitals or as it is; it has no text constants that would suffer."""
    return text.upper() if upper else text


@MANY
@given(
    bounds=st.lists(conditions(), min_size=1, max_size=4),
    upper=st.booleans(),
    as_int=st.booleans(),
    aliases=st.booleans(),
    joined=st.booleans(),
)
def test_comma_joins(
    store: CatalogStore,
    frames: list[DrawnFrame],
    bounds: list[tuple[str, str, int]],
    upper: bool,
    as_int: bool,
    aliases: bool,
    joined: bool,
) -> None:
    """Metaocean with any t_<tag> tables, joined by comma or JOIN, with or without int()."""
    tags = list(dict.fromkeys(tag for tag, _, _ in bounds))
    name = {tag: f"a{i}" if aliases else f"t_{tag}" for i, tag in enumerate(tags)}
    tables = {tag: f"t_{tag} {name[tag]}" if aliases else f"t_{tag}" for tag in tags}
    on = [f"{name[tag]}.fkey = metaocean.fkey" for tag in tags]
    ranges = [
        f"int({name[tag]}.value) {sign} {n}" if as_int else f"{name[tag]}.value {sign} {n}"
        for tag, sign, n in bounds
    ]
    if joined:
        joins = "".join(f" join {tables[t]} on {on[i]}" for i, t in enumerate(tags))
        text = f"select filename from metaocean{joins} where {' and '.join(ranges)}"
    else:
        text = f"select filename from {', '.join(['metaocean', *tables.values()])}"
        text += f" where {' and '.join([*on, *ranges])} with ur;"
    fkeys = sorted(str(row[0]) for row in rows(store, letters(text, upper)))
    assert fkeys == sorted(frame.key for frame in holding(frames, bounds))


@pytest.mark.wide
@FEWER
@given(bounds=st.lists(conditions(), min_size=1, max_size=4))
def test_three_ways_of_one_question(
    store: CatalogStore, frames: list[DrawnFrame], bounds: list[tuple[str, str, int]]
) -> None:
    """metaocean_view, a WHERE body and label ranges find the frames that Python finds."""
    body = " and ".join(f"{tag} {sign} {n}" for tag, sign, n in bounds)
    expected = sorted(frame.fkey for frame in holding(frames, bounds))
    view = rows(store, f"select fkey from metaocean_view where {body} order by fkey")
    assert [row[0] for row in view] == expected
    selected = select_frames(store, Question(where=body))
    assert selected.frames["fkey"].to_pylist() == expected
    closed = [(tag, n) for tag, sign, n in bounds if sign == "<=" and n >= 0]
    question = Question(ranges=tuple(LabelRange(tag=tag, highest=n) for tag, n in closed))
    by_range = select_frames(store, question).frames["fkey"].to_pylist()
    within = holding(frames, [(tag, "<=", n) for tag, n in closed])
    assert by_range == sorted(frame.fkey for frame in within)


@MANY
@given(tag=st.sampled_from(TAGS), bound=st.integers(0, 3), falling=st.booleans())
def test_left_joins(
    store: CatalogStore, frames: list[DrawnFrame], tag: str, bound: int, falling: bool
) -> None:
    """Every file with the tag's value or null, in the order of value and name."""
    by_key = {frame.key: frame.tags[tag] for frame in frames}
    text = (
        f"select mo.filename, int(tt.value) v from metaocean mo left join t_{tag} tt "
        f"on mo.fkey = tt.fkey where tt.value is null or int(tt.value) >= {bound} "
        f"order by v {'desc' if falling else ''}, mo.filename"
    )
    expected = [(key, by_key.get(key)) for key in listed_files()]
    expected = [(key, value) for key, value in expected if value is None or value >= bound]
    high = 10**9
    expected.sort(
        key=lambda row: ((-1 if falling else 1) * (high if row[1] is None else row[1]), row[0])
    )
    assert rows(store, text) == expected


@FEWER
@given(
    tag=st.sampled_from(TAGS),
    group=st.sampled_from(["front", "side", "rear", "left_", "right_", "center"]),
    clause=conditions(),
)
def test_aggregates(
    store: CatalogStore,
    frames: list[DrawnFrame],
    tag: str,
    group: str,
    clause: tuple[str, str, int],
) -> None:
    """count, sum, avg, min, max and a share per group, with integer arithmetic."""
    condition_tag, sign, bound = clause
    text = (
        f"select g.value, count(*), sum(int(t.value)), avg(int(t.value)), min(int(t.value)), "
        f"max(int(t.value)), sum(int(t.value)) * 100 / (count(*) * 2319360) "
        f"from t_{tag} t, t_{group} g, t_{condition_tag} c "
        f"where t.fkey = g.fkey and c.fkey = g.fkey and int(c.value) {sign} {bound} "
        f"group by g.value having count(*) > 0 order by g.value"
    )
    expected: list[tuple[object, ...]] = []
    for flag in (0, 1):
        counts = [f.tags[tag] for f in holding(frames, [clause]) if f.tags[group] == flag]
        if counts:
            total, pixels = sum(counts), len(counts) * 2319360
            mean = total // len(counts)
            # BIGINT is DECIMAL(19,0), the divisor DECIMAL(31,0): the share has scale 12.
            share = Decimal(total * 100 * 10**12 // pixels).scaleb(-12)
            row = (str(flag), len(counts), total, mean, min(counts), max(counts), share)
            expected.append(row)
    assert rows(store, text) == expected
