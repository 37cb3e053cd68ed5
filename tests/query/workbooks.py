"""Workbooks read by the standard library, for tests without a reader of them."""

import io
import re
import zipfile
from datetime import datetime, timedelta
from typing import Any
from xml.etree import ElementTree

_NAMESPACE = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def workbook_columns(body: bytes) -> dict[str, list[Any]]:
    """The columns of a workbook's sheet by the names in its first line; times as datetime."""
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        assert archive.testzip() is None
        sheet = ElementTree.fromstring(archive.read("xl/worksheets/sheet1.xml"))
    names, *rows = ([*map(_value, row)] for row in sheet.iter(f"{_NAMESPACE}row"))
    assert {len(row) for row in rows} <= {len(names)}
    return {name: [row[index] for row in rows] for index, name in enumerate(names)}


def _value(cell: ElementTree.Element) -> Any:
    if cell.get("t") == "inlineStr":
        text = "".join(cell.itertext())
        return re.sub("_x([0-9A-F]{4})_", lambda code: chr(int(code[1], 16)), text)
    number = cell.findtext(f"{_NAMESPACE}v")
    if number is None:
        return None
    if cell.get("t") == "b":
        return number == "1"
    if cell.get("s"):
        return datetime.fromisoformat("1899-12-30") + timedelta(days=float(number))
    return int(number) if re.fullmatch(r"-?\d+", number) else float(number)
