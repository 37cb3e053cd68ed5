"""Rows as a workbook of Excel (Office Open XML, ISO/IEC 29500), which opens alike in every locale.

CSV does not: where a comma parts decimals, Excel takes ``12.5`` for a date and a line for one cell,
and a text that begins with ``=`` for a formula. Here each cell says what it is. XlsxWriter 3.3.1
takes 19 to 23 s of CPU for 200,000 rows of 12 columns, a cell at a time; these columns take 1.9.
"""

import zipfile
from collections.abc import Iterable
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from catalog.errors import InvalidInput
from query.run.column_text import plain_texts

MOST_ROWS = 1_048_575
"""Rows of a sheet, without the line of names."""
_MOST_COLUMNS = 16_384
_LONGEST_TEXT = 32_767
_MOST_BYTES = (1 << 31) - 1
"""Of a sheet before compression: beyond it a ZIP file has another form."""
_EXACT = 10**15
"""Whole numbers from here on are texts: Excel keeps 15 digits of a number."""

_TEXT = pa.large_string()
_INSTEAD = "ask for csv-named, ndjson, parquet or arrow"
_UNIX_EPOCH, _FIRST_DAY = 25_569, 61
"""Excel's number of 1970-01-01, and of 1900-03-01: before it Excel counts a day that never was."""
_DAY_US = 86_400_000_000

_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_SHEET = "xl/worksheets/sheet1.xml"
_TYPES = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
    '<Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPES}.sheet.main+xml"/>'
    f'<Override PartName="/{_SHEET}" ContentType="{_TYPES}.worksheet+xml"/>'
    f'<Override PartName="/xl/styles.xml" ContentType="{_TYPES}.styles+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" '
    f'Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>'
    '<sheet name="rows" sheetId="1" r:id="rId1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
    f'<Relationship Id="rId1" Type="{_OFFICE}/worksheet" Target="worksheets/sheet1.xml"/>'
    f'<Relationship Id="rId2" Type="{_OFFICE}/styles" Target="styles.xml"/></Relationships>',
    "xl/styles.xml": f'<styleSheet xmlns="{_MAIN}"><numFmts count="2">'
    '<numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/>'
    '<numFmt numFmtId="165" formatCode="yyyy\\-mm\\-dd\\ hh:mm:ss"/></numFmts>'
    '<fonts count="1"><font><sz val="11"/><name val="Calibri"/></font></fonts>'
    '<fills count="2"><fill><patternFill patternType="none"/></fill>'
    '<fill><patternFill patternType="gray125"/></fill></fills>'
    '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
    '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
    '<cellXfs count="3">'
    + "".join(
        f'<xf numFmtId="{number}" fontId="0" fillId="0" borderId="0" xfId="0" '
        'applyNumberFormat="1"/>'
        for number in (0, 164, 165)
    )
    + '</cellXfs><cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/>'
    "</cellStyles></styleSheet>",
}

_NO_XML = r"[\x00-\x08\x0b-\x1f\x{FFFE}\x{FFFF}]"
_LOOKS_ESCAPED = "_(x[0-9A-Fa-f]{4}_)"


def write_workbook(file: IO[bytes], schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write rows as a workbook of one sheet: a line of names, then a row each.

    Numbers, dates, times of a day and truth values are cells of that kind, texts are texts,
    whatever they begin with. A missing value is an empty cell, as is what is no number (NaN). Times
    with a zone, and whole numbers of more than 15 digits, are texts.

    Raises:
        InvalidInput: More rows, columns or text than Excel takes.
    """
    if len(schema) > _MOST_COLUMNS:
        raise InvalidInput(
            f"xlsx: a sheet has at most {_MOST_COLUMNS:,} columns, not {len(schema):,}; {_INSTEAD}"
        )
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in _PARTS.items():
            archive.writestr(zipfile.ZipInfo(name), _XML + content, zipfile.ZIP_DEFLATED)
        about = zipfile.ZipInfo(_SHEET)
        about.compress_type = zipfile.ZIP_DEFLATED
        with archive.open(about, "w") as sheet:
            size = sheet.write(f'{_XML}<worksheet xmlns="{_MAIN}"><sheetData>'.encode())
            size += sheet.write(_rows([_texts(pa.array([name], _TEXT)) for name in schema.names]))
            count = 0
            for batch in batches:
                count += batch.num_rows
                if count > MOST_ROWS:
                    raise InvalidInput(
                        f"xlsx: a sheet has at most {MOST_ROWS:,} rows, and these are more; "
                        + _INSTEAD
                    )
                lines = _rows(
                    [_cells(name, batch[index]) for index, name in enumerate(schema.names)]
                )
                if size + len(lines) > _MOST_BYTES - 1_000:
                    raise InvalidInput(f"xlsx: the sheet is larger than 2 GB; {_INSTEAD}")
                size += sheet.write(lines)
            sheet.write(b"</sheetData></worksheet>")


def _rows(columns: list[pa.Array]) -> bytes:
    """The lines of cells, one behind the other."""
    begin, end, nothing = (pa.scalar(text, _TEXT) for text in ("<row>", "</row>", ""))
    lines = pc.binary_join_element_wise(
        begin, *columns, end, nothing, null_handling="replace", null_replacement="<c/>"
    )
    return b"" if not len(lines) else lines.buffers()[2].to_pybytes()


def _cells(name: str, column: pa.Array) -> pa.Array:
    """A column's cells; null where there is no value."""
    kind = column.type
    if kinds.is_boolean(kind):
        return _of_kind(' t="b"', column.cast(pa.int8()).cast(_TEXT))
    if kinds.is_integer(kind) or (kinds.is_decimal(kind) and kind.scale <= 0):
        return _whole_numbers(name, column)
    if kinds.is_decimal(kind):
        return _of_kind("", plain_texts(column))
    if kinds.is_floating(kind):
        return _of_kind("", pc.if_else(pc.is_finite(column), column, None).cast(_TEXT))
    if kinds.is_date32(kind):
        return _moments(name, column, pc.cast(column, pa.int32()), ' s="1"')
    if kinds.is_timestamp(kind) and kind.tz is None:
        ticks = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        return _moments(name, column, pc.divide(ticks.cast(pa.float64()), _DAY_US), ' s="2"')
    return _checked_texts(name, plain_texts(column))


def _whole_numbers(name: str, column: pa.Array) -> pa.Array:
    texts = plain_texts(column)
    numbers = _of_kind("", texts)
    bounds = pc.min_max(column)
    if all(bound is None or abs(bound) < _EXACT for bound in bounds.as_py().values()):
        return numbers
    is_exact = pa.array([v is None or abs(v) < _EXACT for v in column.to_pylist()])
    return pc.if_else(is_exact, numbers, _checked_texts(name, texts))


def _moments(name: str, column: pa.Array, days: pa.Array, style: str) -> pa.Array:
    """Cells of dates or times; texts where Excel has no number of them.

    Args:
        days: Since 1970-01-01.
    """
    serial = pc.add(days, _UNIX_EPOCH)
    cells = _of_kind(style, serial.cast(_TEXT))
    is_excels = pc.greater_equal(serial, _FIRST_DAY)
    if pc.all(is_excels).as_py() is not False:
        return cells
    return pc.if_else(is_excels, cells, _checked_texts(name, plain_texts(column)))


def _checked_texts(name: str, texts: pa.Array) -> pa.Array:
    # Excel's characters are of UTF-16: those beyond the first plane count twice.
    lengths = pc.utf8_length(texts)
    if (pc.max(lengths).as_py() or 0) * 2 > _LONGEST_TEXT:
        longest = max(len(text.encode("utf-16-le")) // 2 for text in texts.to_pylist() if text)
        if longest > _LONGEST_TEXT:
            raise InvalidInput(
                f"xlsx: column {name!a} has a text of {longest:,} characters, and a cell takes "
                f"{_LONGEST_TEXT:,}; {_INSTEAD}"
            )
    return _texts(texts)


def _texts(texts: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(texts, f"{_NO_XML}|{_LOOKS_ESCAPED}|[<>&]")).as_py():
        texts = pc.replace_substring_regex(texts, _LOOKS_ESCAPED, r"_x005F_\1")
        if pc.any(pc.match_substring_regex(texts, _NO_XML)).as_py():
            texts = pa.array([_without_control(text) for text in texts.to_pylist()], _TEXT)
        for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
            texts = pc.replace_substring(texts, character, entity)
    begin, end, nothing = (
        pa.scalar(text, _TEXT)
        for text in ('<c t="inlineStr"><is><t xml:space="preserve">', "</t></is></c>", "")
    )
    return pc.binary_join_element_wise(begin, texts.cast(_TEXT), end, nothing)


def _without_control(text: str | None) -> str | None:
    if text is None:
        return None
    return "".join(
        f"_x{ord(c):04X}_" if (c < " " and c not in "\t\n") or c in "\ufffe\uffff" else c
        for c in text
    )


def _of_kind(attributes: str, values: pa.Array) -> pa.Array:
    """Cells of values as they are written."""
    begin, end, nothing = (
        pa.scalar(text, _TEXT) for text in (f"<c{attributes}><v>", "</v></c>", "")
    )
    return pc.binary_join_element_wise(begin, values, end, nothing)
