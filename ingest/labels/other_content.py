"""Names the content of a file that is no picture or table. A leaf of the standard library."""

import re

_BEGINNINGS = (
    (b"version https://git-lfs", "a Git LFS pointer, which stands for the file: git lfs pull"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"II*\0", "a TIFF image"),
    (b"MM\0*", "a TIFF image"),
    (b"\0\0\0\x0cjP", "a JPEG 2000 image"),
    (b"\x1f\x8b", "gzip data: decompress it"),
    (b"BZh", "bzip2 data: decompress it"),
    (b"\xfd7zXZ\0", "xz data: decompress it"),
    (b"\x28\xb5\x2f\xfd", "zstd data: decompress it"),
    (b"PK\x03\x04", "a zip archive: unpack it"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x89PNG\r\n", "a PNG image"),
    (b"%PDF", "a PDF"),
    (b"SQLite format", "an SQLite database"),
)
_WITH_MORE = (
    (b"RIFF", 8, b"WEBP", "a WebP image"),
    (b"BM", 6, bytes(4), "a BMP image"),
)
"""Beginnings that texts may have, with what else stands there: from which byte on, and what."""

_MARKUP_BYTES = 4096
_HTML = re.compile(
    rb"<!doctype html|(?:<\?xml[^>]*>\s*)?(?:<!doctype[^>]*>\s*)?<html", re.IGNORECASE
)
_NO_TEXT = re.compile(rb"[^\t\n\f\r -~\x80-\xff]")
_CODE = re.compile(rb"<Code>(\w{1,64})</Code>")


def kind_of_content(content: bytes) -> str:
    """The kind of a file's content by its beginning; nothing of a text is shown.

    >>> kind_of_content(b"version https://git-lfs.github.com/spec/v1")
    'a Git LFS pointer, which stands for the file: git lfs pull'
    """
    if not content:
        return "empty"
    for beginning, kind in _BEGINNINGS:
        if content.startswith(beginning):
            return kind
    for beginning, at, more, kind in _WITH_MORE:
        if content.startswith(beginning) and content[at : at + len(more)] == more:
            return kind
    begin = content[:_MARKUP_BYTES].removeprefix(b"\xef\xbb\xbf").lstrip()
    if begin.startswith(b"<"):
        return _markup(begin)
    if not content.strip(b"\0"):
        return "zero bytes alone, as where a copy broke off"
    if begin[:1] in (b"{", b"["):
        return "JSON"
    is_text = not _NO_TEXT.search(begin)
    return "text" if is_text else f"other data: it begins with {content[:8].hex(' ')}"


def _markup(begin: bytes) -> str:
    if _HTML.match(begin):
        return "a web page, as of a login or an error, stored in its place"
    code = _CODE.search(begin)
    error = f": an object store's error {code[1].decode()}, stored in its place" if code else ""
    return f"an XML document{error}"


def not_json(content: bytes, error: Exception) -> str:
    """Why a file is not JSON: what it is, or where its text goes wrong."""
    kind = kind_of_content(content)
    return f"not JSON: {error}" if kind in ("JSON", "text") else f"not JSON but {kind}"
