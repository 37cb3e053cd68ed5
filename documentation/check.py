"""What is wrong with a built site: ``python -m documentation.check FOLDER``, which ends with 1.

Zensical's --strict looks at links in Markdown. This looks at what came out: links and headings in
HTML, assets of other hosts, and pages that the navigation lacks.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_ASSETS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
_NOT_LOADED = ("canonical", "prev", "next", "alternate", "edit")
"""Kinds of <link> that a browser does not load."""
_IN_NAVIGATION = re.compile(r"^ *- (?:[^:#]+: )?(\S+\.md)$", re.MULTILINE)


class _Page(HTMLParser):
    """Links, assets and headings of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.assets: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note what the tag names."""
        values = {name: value or "" for name, value in attributes}
        self.names |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif values.get(_ASSETS.get(tag, "")) and values.get("rel") not in _NOT_LOADED:
            self.assets.append(values[_ASSETS[tag]])


def faults(build: Path) -> Iterator[str]:
    """A line for each fault of build/site and of build/mkdocs.yml."""
    site = (build / "site").resolve()
    pages = {file: _Page(file.read_text(encoding="utf-8")) for file in sorted(site.rglob("*.html"))}
    if not pages:
        yield f"{site}: no pages; expected those that zensical build writes"
    for file, page in pages.items():
        name = file.relative_to(site)
        for asset in page.assets:
            if urlsplit(asset).netloc or urlsplit(asset).scheme not in ("", "data"):
                yield f"{name}: {asset} is of another host; bring it with the site"
            elif fault := _fault_of_link(site, pages, file, asset):
                yield f"{name}: {fault}"
        if file.name != "404.html":  # its links are those of any path
            for link in dict.fromkeys(page.links):
                if fault := _fault_of_link(site, pages, file, link):
                    yield f"{name}: {fault}"
    yield from _outside_navigation(build)


def _fault_of_link(site: Path, pages: Mapping[Path, _Page], file: Path, link: str) -> str:
    """What is wrong with a link of a page; empty where it leads somewhere, or to another host."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return ""
    target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    if file.name == "404.html":
        target = site / unquote(parts.path).lstrip("/")
    if not target.is_file():
        return f"link {link!r} leads to no file; expected one of the site"
    if parts.fragment and target in pages:
        heading = unquote(parts.fragment)
        if heading not in pages[target].names and not heading.startswith("__"):
            return f"link {link!r} leads to no heading of {target.name}"
    return ""


def _outside_navigation(build: Path) -> Iterator[str]:
    settings = (build / "mkdocs.yml").read_text(encoding="utf-8")
    before, _, navigation = settings.partition("\nnav:\n")
    in_tables = re.findall(r"^  /(\S+)$", before.partition("not_in_nav: |\n")[2], re.MULTILINE)
    listed = set(_IN_NAVIGATION.findall(navigation))
    pages = {str(page.relative_to(build / "docs")) for page in (build / "docs").rglob("*.md")}
    for name in sorted(listed - pages):
        yield f"mkdocs.yml: nav names {name}, which is no page"
    for name in sorted(pages - listed):
        if not any(fnmatch(name, pattern) for pattern in in_tables):
            yield f"{name}: is not in nav of documentation/mkdocs.yml; add a line"


if __name__ == "__main__":
    found = list(faults(Path(sys.argv[1])))
    sys.stdout.write("".join(f"{line}\n" for line in found))
    sys.exit(1 if found else 0)
