"""Pages for the site, and the check of what was built: each kind of fault is found."""

import re
from pathlib import Path

import pytest

from documentation import pages, reference
from documentation.check import faults
from tests.pipeline.homes import REPOSITORY


def test_pages_lie_as_in_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all that they link to, scripts from npm, and none of an earlier build."""
    modules = tmp_path / "node_modules"
    for file in pages.SCRIPTS.values():
        (modules / file).parent.mkdir(parents=True)
        (modules / file).write_text(f"// {file}")
    monkeypatch.setattr(reference, "pages", lambda: {"settings.md": "# Settings\n"})
    (tmp_path / "build" / "docs").mkdir(parents=True)
    (tmp_path / "build" / "docs" / "left.md").touch()
    pages.write_pages(tmp_path / "build", modules)
    docs = tmp_path / "build" / "docs"
    assert not (docs / "left.md").exists()
    committed = {page.relative_to(REPOSITORY) for page in REPOSITORY.glob("docs/**/*.md")}
    written = {page.relative_to(docs) for page in docs.rglob("*.md")}
    assert committed < written
    assert {Path("README.md"), Path("CONTRIBUTING.md"), Path("training/README.md")} < written
    assert (docs / "docs/sql.md").read_text() == (REPOSITORY / "docs/sql.md").read_text()
    assert (docs / "query/db2/functions.py").is_file()  # docs/how-to-add links to it
    assert (docs / "docs/reference/settings.md").read_text() == "# Settings\n"
    assert "[settings](settings.md)" in (docs / "docs/reference/README.md").read_text()
    notebook = (docs / "docs/examples/loop.md").read_text()
    assert notebook.startswith("# The loop\n")
    assert "\n```python\nclient.sql(" in notebook
    assert "[loop.ipynb](loop.ipynb)" in notebook
    drawn = (docs / "docs" / "architecture.md").read_text()
    assert drawn.startswith("---\nscripts: [javascripts/mermaid.js]\n---\n# ")
    assert (docs / "javascripts" / "mermaid.js").read_text().startswith("// @mermaid-js")
    assert {path.name for path in (tmp_path / "build").iterdir()} == {"docs", "theme", "mkdocs.yml"}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A built site of two pages, which has no fault."""
    (site := tmp_path / "site").mkdir()
    (tmp_path / "docs" / "more").mkdir(parents=True)
    (site / "style.css").touch()
    head = (
        '<link rel="stylesheet" href="style.css"><link rel="canonical" href="https://x.example/">'
    )
    (site / "a.html").write_text(
        f'{head}<h1 id="top">A</h1><a href="b.html#two">b</a><a href="https://x.example">x</a>'
    )
    (site / "b.html").write_text(f'{head}<h2 id="two">B</h2><a href="#two">up</a>')
    for name in ("a.md", "b.md", "more/0001.md"):
        (tmp_path / "docs" / name).touch()
    (tmp_path / "mkdocs.yml").write_text(
        "not_in_nav: |\n  /more/0*\ntheme: x\n"
        "nav:\n  - A: a.md\n  - More:\n      - B, and so on: b.md\n"
    )
    assert list(faults(tmp_path)) == []
    return tmp_path


@pytest.mark.parametrize(
    ("file", "old", "new", "fault"),
    [
        ("site/a.html", "b.html#two", "c.html", "a.html: link 'c.html' leads to no file"),
        ("site/a.html", "#two", "#twoo", "link 'b.html#twoo' leads to no heading of b.html"),
        ("site/b.html", 'href="#two"', 'href="#three"', "b.html: link '#three' leads to no"),
        ("site/b.html", "style.css", "//cdn.example/s.css", "cdn.example/s.css is of another"),
        ("site/b.html", "<h2", '<script src="https://u.example/x.js"></script><h2',
         "https://u.example/x.js is of another host"),
        ("site/b.html", "<h2", '<img src="none.png"><h2', "link 'none.png' leads to no file"),
        ("mkdocs.yml", "  - A: a.md\n", "", "a.md: is not in nav"),
        ("mkdocs.yml", "/more/0*", "/more/9*", "more/0001.md: is not in nav"),
        ("mkdocs.yml", "B, and so on: b.md", "C: c.md", "nav names c.md, which is no page"),
    ],
)  # fmt: skip
def test_a_fault_is_found(site: Path, file: str, old: str, new: str, fault: str) -> None:
    """Each alone, in a line that names its page."""
    text = (site / file).read_text()
    assert old in text
    (site / file).write_text(text.replace(old, new))
    found = list(faults(site))
    assert any(fault in line for line in found), found


def test_no_page_is_a_fault(tmp_path: Path) -> None:
    """A build that wrote nothing does not pass."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "mkdocs.yml").write_text("nav:\n  - A: a.md\n")
    assert [line for line in faults(tmp_path) if "no pages" in line]


def test_the_navigation_names_pages() -> None:
    """Of the repository and of the reference; `make docs` says which it lacks."""
    settings = (REPOSITORY / "documentation" / "mkdocs.yml").read_text()
    named = re.findall(r": (\S+\.md)$", settings, re.MULTILINE)
    assert len(named) == len(set(named)) > 50
    written = {"docs/reference/" + name for name in
               ("commands.md", "routes.md", "schemas.md", "settings.md", "tags.md")}  # fmt: skip
    written.add("docs/examples/loop.md")  # of loop.ipynb
    assert {name for name in named if not (REPOSITORY / name).is_file()} == written
