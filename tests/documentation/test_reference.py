"""The reference: every command, option, route, field and setting is on its page."""

import re
from typing import Any

import pytest

from api.settings import SETTINGS
from catalog.lake.schema import CLASS_PIXELS_COLUMNS, FILES_COLUMNS, FRAME_TAGS_COLUMNS
from documentation import reference, tables
from documentation.pages import linked
from documentation.reference import commands, routes
from documentation.reference.markdown import escaped, table
from ingest.extractors.registry import BUILT_IN, extractor_named
from tests.api.documents import openapi_document
from tests.api.test_command_line import COMMANDS


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """The pages as `make docs` has them."""
    return reference.pages()


def rows(text: str, heading: str) -> list[str]:
    """First cells of the rows below a heading, up to the next one."""
    part = text.partition(f"\n{heading}\n")[2]
    assert part, heading
    return re.findall(r"^\| (.*?) \|", re.split(r"^#+ ", part, flags=re.MULTILINE)[0], re.MULTILINE)


@pytest.mark.wide
def test_every_command_has_its_options(pages: dict[str, str]) -> None:
    """Each leaf has a heading, and a row with words for each parameter that --help shows."""
    text = pages["commands.md"]
    listed = dict(commands.leaves())
    groups = {name.rpartition(" ")[0] for name in COMMANDS}
    assert set(listed) == set(COMMANDS) - groups - {""}
    assert len(listed) > 100
    for name, command in listed.items():
        named = " ".join(rows(text, f"{'###' if ' ' in name else '##'} {name}"))
        options = [one for one in command.params if not getattr(one, "hidden", False)]
        for option in options:
            is_option = option.opts[0].startswith("-")
            shown = option.opts[0] if is_option else option.metavar or option.name
            assert shown.replace("|", "\\|").lower() in named.lower(), (name, option.opts)
    assert "| `--range" in text
    assert not re.search(r"^\| `.*\|  \|$", text, re.MULTILINE)  # without words


@pytest.mark.wide
def test_every_route_and_field_is_there(pages: dict[str, str]) -> None:
    """Each path and method but HEAD, with its parameters; each schema with its fields."""
    api = openapi_document()
    text = pages["routes.md"]
    named = {(method, path) for method, path, _ in routes.operations(api)}
    assert len(named) > 150
    assert named == {
        (method, path)
        for path, methods in api["paths"].items()
        for method in methods
        if method != "head"
    }
    for method, path, operation in routes.operations(api):
        cells = rows(text, f"### `{method.upper()} {path}`")
        parameters = [f"`{one['name']}`" for one in operation.get("parameters", ())]
        assert [cell for cell in cells if cell in parameters] == parameters, (method, path)
    schemas: dict[str, Any] = api["components"]["schemas"]
    for name, schema in schemas.items():
        cells = rows(pages["schemas.md"], f"## {name}") if schema.get("properties") else []
        assert [cell.strip("`") for cell in cells[2:]] == list(schema.get("properties", {})), name
    links = set(re.findall(r"\(schemas\.md#([a-z0-9]+)\)", text))
    assert links <= {name.lower() for name in schemas}
    assert len(links) > 100


@pytest.mark.wide
def test_every_setting_is_there(pages: dict[str, str]) -> None:
    """Each variable, its words, and defaults as they are written into the environment."""
    found = re.findall(r"^\| `FRAMESIFT_(\w+)` \| (.*?) \| (.+) \|$", pages["settings.md"], re.M)
    assert [name.lower() for name, *_ in found] == list(SETTINGS)
    assert [name for name, _, words in found if len(words) < 10] == []
    defaults = {name: default for name, default, _ in found}
    assert defaults["HOME"] == "`~/.framesift`"
    assert defaults["QUERY_MEMORY"] == "`2GB`"
    assert defaults["RECORDS"] == ""
    assert "`/usr/lpp/mmfs/bin/mmafmctl`" in defaults["AFM_COMMAND"]
    words = {name: text for name, _, text in found}
    assert "at least 1, at most 256" in words["STATEMENTS_AT_ONCE"]
    assert "One of `nobody`, `admins`, `users`." in words["RUN_PROGRAMS"]


def test_signs_of_markdown_are_text() -> None:
    """Those of help and descriptions; code stays code, and a bar does not end a cell."""
    assert escaped("a <b> *c* [d] x_y `e_f <g>`") == r"a &lt;b> \*c\* [d] x_y `e_f <g>`"
    assert escaped("[d](e) _f_ \\") == r"[d\](e) \_f\_ \\"
    assert table(("", ""), [("a|b", "c\nd")]) == "|  |  |\n| --- | --- |\n| a\\|b | c d |\n"


@pytest.mark.wide
def test_the_index_names_each_page(pages: dict[str, str]) -> None:
    """A page that code writes becomes a link; one that the index lacks is an error."""
    assert linked("| `a.md` | x |", {"a.md": ""}) == "| [a](a.md) | x |"
    with pytest.raises(ValueError, match=r"`b\.md` is missing"):
        linked("| `a.md` | x |", {"a.md": "", "b.md": ""})
    assert set(pages) == {
        "commands.md", "routes.md", "schemas.md", "settings.md", "tags.md"
    }  # fmt: skip


@pytest.mark.parametrize("name", tables.TABLES)
def test_tables_of_committed_pages_are_the_code_s(name: str) -> None:
    """Exit codes and the most used settings; marks that a page lacks are an error."""
    path, text = tables.TABLES[name]
    page = (tables.REPOSITORY / path).read_text(encoding="utf-8")
    assert tables.with_table(page, name, text()) == page, "run: python -m documentation.tables"
    assert tables.with_table(page, name, "x\n").count("\nx\n<!-- ") == 1
    with pytest.raises(ValueError, match="no marks of the table"):
        tables.with_table("# A page", name, text())


def test_spectrum_discover_s_endpoints_are_in_their_table() -> None:
    """Each path and method with one row; those that are refused say so in the OpenAPI document."""
    page = (tables.REPOSITORY / "docs" / "spectrum-discover.md").read_text(encoding="utf-8")
    listed = {
        (method.lower(), path): state
        for path, methods, state in re.findall(
            r"^\| `(/\S+)` \| (`[A-Z`, ]+`) \| (served|refused) \|", page, re.MULTILINE
        )
        for method in re.findall(r"[A-Z]+", methods)
    }
    theirs = {
        (method, path): operation
        for method, path, operation in routes.operations(openapi_document())
        if operation["tags"] == ["Spectrum Discover"]
    }
    assert set(listed) == set(theirs)
    for route, operation in theirs.items():
        succeeds = any(status < "400" for status in operation["responses"])
        assert succeeds == (listed[route] == "served"), route


@pytest.mark.wide
def test_every_tag_is_there(pages: dict[str, str]) -> None:
    """Those of frames and of each built-in extractor with their types, and columns of files."""
    text = pages["tags.md"]
    for name in BUILT_IN:
        columns = [f"`{tag}`" for tag in extractor_named(name).columns]
        assert rows(text, f"## Of the extractor {name}")[2:] == columns
    frame = {*FRAME_TAGS_COLUMNS, *CLASS_PIXELS_COLUMNS} - {"fkey"}
    assert {cell.strip("`") for cell in rows(text, "## Of every frame")[2:]} == frame
    assert [cell.strip("`") for cell in rows(text, "## Columns of files")[2:]] == list(
        FILES_COLUMNS
    )
    assert "| `front` | TINYINT |" in text
    assert "| `collection` | VARCHAR | yes |" in text
