"""Kinds of tags: lengths and listed values, held to by every write, as each snapshot had them."""

from pathlib import Path

import pyarrow as pa
import pytest

from catalog.errors import AlreadyExists, InvalidInput, NotFound
from catalog.frames.frames import register
from catalog.lake.arrow_types import ARROW
from catalog.maintenance.check import check
from catalog.store import CatalogStore
from catalog.tags import families
from catalog.tags.tag_kinds import kinds
from catalog.tags.tag_rules import TYPES, TagKind
from catalog.tags.tags import add_class_tags, add_tag, set_kind
from tests.catalog.some_rows import file, frame, open_store, source_names
from tests.templates import Templates


def make_three_files(folder: Path) -> None:
    """A catalog with three files."""
    store = open_store(folder)
    with store.writing("made") as connection:
        register(connection, source_names(), [file(key) for key in "abc"], [frame("a")], 1)
    store.close()


@pytest.fixture
def filled(templates: Templates, tmp_path: Path) -> CatalogStore:
    """A copy of that catalog."""
    templates.copy(make_three_files, tmp_path / "home")
    return open_store(tmp_path / "home")


def write(store: CatalogStore, tag: str, values: list[object], kind: str = "VARCHAR") -> None:
    fkeys = [f"c1:d1:{key}" for key in "abc"[: len(values)]]
    rows = pa.table({"fkey": fkeys, tag: pa.array(values, ARROW[kind])})
    families.write(store, "own", {tag: kind}, rows)


def values_of(store: CatalogStore, tag: str, at: int | None = None) -> dict[str, str]:
    with store.reading(at) as cursor:
        rows = cursor.execute(f'SELECT fkey, value FROM "t_{tag}"').fetchall()
    return {fkey[-1]: value for fkey, value in rows}


def kinds_of(store: CatalogStore, at: int | None = None) -> dict[str, TagKind]:
    with store.reading(at) as cursor:
        return kinds(cursor)


@pytest.mark.parametrize(
    ("kind", "longest"), [("Open", 256), ("Restricted", 256), ("Characteristics", 4096)]
)
def test_lengths(filled: CatalogStore, kind: str, longest: int) -> None:
    """Characters, not bytes: the longest value is kept, one more is refused whole."""
    allowed = ["é" * longest] if kind == "Restricted" else []
    add_tag(filled, "note", "text", kind, allowed)
    write(filled, "note", ["é" * longest])
    before = filled.snapshot()
    with pytest.raises(InvalidInput) as error:
        write(filled, "note", ["é" * longest, "é" * (longest + 1)])
    assert f"has {longest + 1:,} characters; a tag of kind {kind} has at most" in str(error.value)
    assert "1 of the rows" in str(error.value)
    assert filled.snapshot() == before
    assert values_of(filled, "note") == {"a": "é" * longest}


def test_a_tag_nobody_defined_is_characteristics(filled: CatalogStore) -> None:
    """4,096 characters, whatever they are."""
    write(filled, "free", ["x" * 4096])
    with pytest.raises(InvalidInput, match="4,097 characters; a tag of kind Characteristics"):
        write(filled, "free", ["x" * 4097])


def test_restricted(filled: CatalogStore) -> None:
    """One of the values, exactly; unknown values (NULL) are no values and may be."""
    definition = add_tag(filled, "weather", "text", "restricted", ["rain", "it's sun"])
    assert definition == TagKind("Restricted", ("rain", "it's sun"))
    write(filled, "weather", ["rain", None, "it's sun"])
    for wrong in ("Rain", "rain ", "", "snow"):
        with pytest.raises(InvalidInput) as error:
            write(filled, "weather", ["rain", wrong, wrong])
        assert f"tag 'weather': value '{wrong}' is none of its values rain, it's sun" in str(
            error.value
        )
        assert "2 of the rows" in str(error.value)
    assert values_of(filled, "weather") == {"a": "rain", "c": "it's sun"}


@pytest.mark.parametrize(
    ("type_name", "allowed", "good", "bad", "values"),
    [
        ("integer", ["01", " 2"], 2, 3, ("1", "2")),
        ("real", ["0.50"], 0.5, 0.25, ("0.5",)),
        ("boolean", ["TRUE"], True, False, ("true",)),
    ],
)
def test_restricted_values_have_the_tags_type(
    filled: CatalogStore,
    type_name: str,
    allowed: list[str],
    good: object,
    bad: object,
    values: tuple[str, ...],
) -> None:
    """Values are compared as the tag shows them, however they were spelled."""
    assert add_tag(filled, "one", type_name, "Restricted", allowed).allowed == values
    write(filled, "one", [good], TYPES[type_name])
    with pytest.raises(InvalidInput, match="is none of its values"):
        write(filled, "one", [bad], TYPES[type_name])


@pytest.mark.parametrize("type_name", TYPES)
def test_every_type(filled: CatalogStore, type_name: str) -> None:
    """A tag of each type, hyphenated, is there at once with its view, without a value."""
    add_tag(filled, f"my-{type_name}", type_name)
    assert values_of(filled, f"my-{type_name}") == {}
    with filled.reading() as cursor:
        columns = families.family_columns(cursor, "own")
        cursor.execute(f'SELECT "my-{type_name}" FROM metaocean_view')
    assert columns == {f"my-{type_name}": TYPES[type_name]}
    assert {one.kind for one in check(filled, {})} <= {"frame_incomplete"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("x", "blob"), "expected one of integer, real, text, timestamp, boolean"),
        (("x", "text", "Free"), "expected one of Open, Restricted, Characteristics"),
        (("x", "text", "Restricted"), "needs its values"),
        (("x", "text", "Restricted", ["a", "a"]), "each value once"),
        (("x", "text", "Restricted", [""]), "each value once"),
        (("x", "text", "Restricted", ["y" * 257]), "1 to 256 characters"),
        (("x", "integer", "Restricted", ["1", "two"]), "value 'two' of a Restricted tag is no"),
        (("x", "text", "Open", ["a"]), "only a Restricted tag has them"),
        (("X", "text"), "lower-case letters"),
        (("9x", "text"), "begins with a letter"),
        (("-x", "text"), "begins with a letter"),
        (("x-", "text"), "inside, hyphens"),
        (("x" * 65, "text"), "at most 64"),
        (("select", "text"), "a word of SQL"),
        (("value", "text"), "a word of SQL or of the catalog's views"),
        (("left", "text"), "a word of SQL"),
        (("fkey", "text"), "a column of every file"),
        (("nodename", "text"), "a column of every file"),
        (("x", "text", "Open", [], "frame"), "the catalog's own"),
    ],
)
def test_what_is_refused(filled: CatalogStore, arguments: tuple[str, ...], words: str) -> None:
    """Names, types, kinds and values that cannot be: one line, and no snapshot."""
    before = filled.snapshot()
    with pytest.raises(InvalidInput) as error:
        add_tag(filled, *arguments)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
    assert filled.snapshot() == before


def test_names_that_are_taken(filled: CatalogStore) -> None:
    """A class, a position, another family's tag: refused, and what is there stays."""
    add_class_tags(filled, ["car"])
    families.write(filled, "late", {"my-tag": "DOUBLE"})
    for taken in ("car", "front", "scene", "my-tag"):
        with pytest.raises(AlreadyExists, match=f"tag '{taken}' already exists"):
            add_tag(filled, taken, "text")


def test_changing_a_kind(filled: CatalogStore) -> None:
    """Refused where files have values it would refuse; old snapshots keep the old kind."""
    add_tag(filled, "weather", "text", "Open")
    write(filled, "weather", ["rain", "snow"])
    before = filled.snapshot()
    with pytest.raises(InvalidInput, match=r"value 'snow' is none of its values rain, sun"):
        set_kind(filled, "weather", "Restricted", ["rain", "sun"])
    assert filled.snapshot() == before
    set_kind(filled, "weather", "Restricted", ["rain", "snow"])
    assert kinds_of(filled) == {"weather": TagKind("Restricted", ("rain", "snow"))}
    assert kinds_of(filled, before) == {"weather": TagKind("Open")}
    set_kind(filled, "front", "Restricted", ["0", "1"])
    with pytest.raises(NotFound, match="did you mean weather"):
        set_kind(filled, "wether", "Open")


def test_dropping_forgets_the_kind(filled: CatalogStore) -> None:
    """A tag of the same name made later is free again."""
    add_tag(filled, "weather", "text", "Restricted", ["rain"])
    before = filled.snapshot()
    families.drop(filled, "own")
    assert kinds_of(filled) == {}
    write(filled, "weather", ["anything"])
    assert values_of(filled, "weather") == {"a": "anything"}
    assert kinds_of(filled, before) == {"weather": TagKind("Restricted", ("rain",))}
