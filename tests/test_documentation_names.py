"""What documentation names exists: files, modules and their names, settings, links."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from api.settings import SETTINGS

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "api", "benchmarks", "catalog", "documentation", "framesift", "ingest", "pipeline", "query",
    "sample_data", "tests", "training",
)  # fmt: skip
_PACKAGE = "|".join(PACKAGES)
_PATH = re.compile(rf"(?<![\w/.-])((?:{_PACKAGE}|docs)/[\w/.-]*\w)")
_MODULE = re.compile(rf"(?<![\w/.@:-])((?:{_PACKAGE})(?:\.[A-Za-z_]\w*)+)")
_NAME = re.compile(rf"`((?:{_PACKAGE})/[\w/]+\.py): ([\w.]+)`")
_LINK = re.compile(r"\]\(([^)\s:]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_SETTING = re.compile(r"\bFRAMESIFT_[A-Z0-9_]*[A-Z0-9]\b")

PAGES = [
    page
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("*/README.md"))
    if page.name != "CHANGELOG.md"  # it tells of what was
]

NO_NAMES = (
    "framesift.extractors",  # a group of entry points
    "framesift.files",  # a table of an attached catalog, and an attribute of spans, as these
    "framesift.bytes",
    "framesift.dataset",
    "framesift.job",
    "framesift.queue_wait_s",
    "framesift.request_id",
    "catalog.db",
    "catalog.reading",  # a method of a store
    "query.kindd",  # a question that is wrong
    "api/application/v1/cipherkey",  # a route of Spectrum Discover's
)


@cache
def documentation() -> list[tuple[Path, str]]:
    """Every page, and what docstrings and comments of every module say."""
    files = (file for package in PACKAGES for file in ROOT.glob(f"{package}/**/*.py"))
    return [
        *((page, page.read_text(encoding="utf-8")) for page in PAGES),
        *((file, said_in(file.read_text(encoding="utf-8"))) for file in files),
    ]


def said_in(source: str) -> str:
    """Docstrings, of attributes too, and comments of a module."""
    told = [
        node.value.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]
    return "\n".join([*told, *re.findall(r"#.*", source)])


def examples_of(text: str) -> set[str]:
    """Files that a page makes itself, as an example."""
    return set(re.findall(r"<!-- example: (\S+) -->", text))


@cache
def names_in(file: Path) -> set[str]:
    """What a module defines, imports or names."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
    return names


@cache
def is_file(named: str) -> bool:
    """Whether it is a file, a folder, a module, a numbered decision, or stands for several."""
    if any(piece.isupper() and piece != "README" for piece in Path(named).with_suffix("").parts):
        return True  # api/services/NOUN.py
    endings = ("", ".py", ".md", "-*.md") if named.startswith("docs/") else ("", ".py", ".md")
    return any(any(ROOT.glob(named + ending)) for ending in endings)


@cache
def is_module(dotted: str) -> bool:
    """Whether it is a package, a module, or a name of one."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        path, rest = ROOT.joinpath(*parts[:length]), parts[length:]
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                return not rest or rest[0] in names_in(file)
        if path.is_dir():
            return not rest
    return False


@pytest.mark.wide
def test_files_and_modules_that_are_named_exist() -> None:
    """Paths such as docs/sql.md, and names such as catalog.errors.SqlError."""
    missing = []
    for page, text in documentation():
        examples = examples_of(text)
        for named in _PATH.findall(text):
            if not (is_file(named) or Path(named).name in examples or named in NO_NAMES):
                missing.append(f"{page.relative_to(ROOT)}: {named}")
        for named in _MODULE.findall(text):
            example = f"{named.rpartition('.')[2]}.py" in examples or named.endswith((".md", ".py"))
            if not (is_module(named) or example or named in NO_NAMES):
                missing.append(f"{page.relative_to(ROOT)}: {named}")
    assert missing == []


def test_functions_and_classes_that_are_named_exist() -> None:
    """Names of a module behind its path, such as catalog/store.py: CatalogStore.writing."""
    missing = [
        f"{page.relative_to(ROOT)}: {path}: {name}"
        for page, text in documentation()
        for path, name in _NAME.findall(text)
        if (ROOT / path).is_file() and not set(name.split(".")) <= names_in(ROOT / path)
    ]
    assert missing == []


def test_links_lead_to_pages_and_headings() -> None:
    """Links between pages, and to a heading of one."""
    broken = []
    for page in PAGES:
        for link in _LINK.findall(page.read_text(encoding="utf-8")):
            path, _, heading = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            exists = target.exists()
            if exists and heading and target.suffix == ".md":
                titles = _HEADING.findall(target.read_text(encoding="utf-8"))
                exists = heading in [anchor(title) for title in titles]
            if not exists:
                broken.append(f"{page.relative_to(ROOT)}: {link}")
    assert broken == []


def anchor(title: str) -> str:
    """What a heading is linked by."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def test_settings_that_are_named_exist() -> None:
    """FRAMESIFT_... of a page is a field of Settings, or is read by name."""
    fields = {f"FRAMESIFT_{name.upper()}" for name in SETTINGS}
    modules = (file for package in PACKAGES for file in ROOT.glob(f"{package}/**/*.py"))
    read = set(_SETTING.findall("\n".join(file.read_text(encoding="utf-8") for file in modules)))
    named = {(page.name, name) for page in PAGES
             for name in _SETTING.findall(page.read_text(encoding="utf-8"))}  # fmt: skip
    assert {match for match in named if match[1] not in fields | read} == set()


def test_every_page_is_in_its_index() -> None:
    """A page that no index names is found by nobody."""
    for folder in ("docs", "docs/decisions", "docs/how-to-add"):
        index = (ROOT / folder / "README.md").read_text(encoding="utf-8")
        pages = {page.name for page in (ROOT / folder).glob("*.md")} - {"README.md"}
        assert {page for page in pages if f"({page}" not in index} == set(), folder


def test_decisions_are_in_the_order_of_their_numbers() -> None:
    """The index of decisions names each page once."""
    index = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    pages = sorted(page.name for page in (ROOT / "docs" / "decisions").glob("0*.md"))
    assert re.findall(r"^\| \[\d+\]\((\S+)\)", index, re.MULTILINE) == pages
