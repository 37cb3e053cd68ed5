"""What Zensical builds the site from: ``python -m documentation.pages FOLDER NODE_MODULES``.

Pages lie in FOLDER/docs as in the repository, so that links between them are the same in both:
docs/, README.md and every file that one of these links to. The pages of docs/reference/ that code
writes are added. FOLDER/mkdocs.yml and FOLDER/theme stand beside.
"""

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from documentation import reference

REPOSITORY = Path(__file__).parents[1]
HERE = Path(__file__).parent
SCRIPTS = {
    # Search from file://, where browsers start no workers.
    "iframe-worker.js": "iframe-worker/shim/index.js",
    "mermaid.js": "@mermaid-js/tiny/dist/mermaid.tiny.js",
}
"""Scripts of the pages, which Zensical would load from another host, by their files in npm's."""
_LINK = re.compile(r"\]\(([^)\s:#]+)[^)]*\)")
_DRAWN = "---\nscripts: [javascripts/mermaid.js]\n---\n"
"""Before a page with a drawing: theme/main.html loads the script, of 3 MB, where it is needed."""


def write_pages(build: Path, node_modules: Path) -> None:
    """Write the folders docs and theme and mkdocs.yml; what an earlier call left is removed."""
    folder = build / "docs"
    for left in (folder, build / "theme"):
        shutil.rmtree(left, ignore_errors=True)
    for file in repository_files():
        target = folder / file.relative_to(REPOSITORY)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    pages = reference.pages()
    for name, text in pages.items():
        (folder / "docs" / "reference" / name).write_text(text, encoding="utf-8")
    index = folder / "docs" / "reference" / "README.md"
    index.write_text(linked(index.read_text(encoding="utf-8"), pages), encoding="utf-8")
    for notebook in folder.rglob("*.ipynb"):
        notebook.with_suffix(".md").write_text(notebook_page(notebook), encoding="utf-8")
    for page in folder.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        if "\n```mermaid\n" in text:
            page.write_text(_DRAWN + text, encoding="utf-8")
    (scripts := folder / "javascripts").mkdir()
    for name, script in SCRIPTS.items():
        shutil.copyfile(node_modules / script, scripts / name)
    shutil.copytree(HERE / "theme", build / "theme")
    shutil.copyfile(HERE / "mkdocs.yml", build / "mkdocs.yml")


def repository_files() -> list[Path]:
    """The files of docs/, README.md, and what they link to, and so on."""
    waiting = [
        REPOSITORY / "README.md",
        *(path for path in sorted(REPOSITORY.glob("docs/**/*")) if path.is_file()),
    ]
    files: dict[Path, None] = {}
    while waiting:
        file = waiting.pop()
        if file in files or "__pycache__" in file.parts:
            continue
        files[file] = None
        if file.suffix == ".md":
            waiting += _linked_files(file)
    return list(files)


def _linked_files(page: Path) -> Iterator[Path]:
    for link in _LINK.findall(page.read_text(encoding="utf-8")):
        target = (page.parent / link).resolve()
        if target.is_file() and target.is_relative_to(REPOSITORY):
            yield target


def notebook_page(file: Path) -> str:
    """A notebook's cells as a page, which has no outputs as the notebook has none."""
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    texts = {"markdown": "{}", "code": "```python\n{}\n```"}
    return (
        "\n\n".join(texts[cell["cell_type"]].format("".join(cell["source"])) for cell in cells)
        + f"\n\nThe notebook itself: [{file.name}]({file.name}).\n"
    )


def linked(index: str, pages: dict[str, str]) -> str:
    """The index of the reference, where the names of pages that code writes become links.

    Raises:
        ValueError: It does not name one of them.
    """
    for name in pages:
        if f"`{name}`" not in index:
            raise ValueError(f"docs/reference/README.md: `{name}` is missing; add a row for it")
        index = index.replace(f"`{name}`", f"[{name.removesuffix('.md')}]({name})")
    return index


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]), Path(sys.argv[2]))
