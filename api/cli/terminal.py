"""Output for people on the terminal, and for programs with --json."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from catalog.text.visible_text import visible, visible_lines

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.jobs.request import JobPaths

_PLAIN: dict[str, Any] = {  # names are shown as they are: no [markup], no :emoji:
    "highlight": False,
    "soft_wrap": True,
    "markup": False,
    "emoji": False,
}


class _Console(Console):
    """Shows what of a text would act on the terminal: see catalog.text.visible_text."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as Console.print does; texts are made safe, Rich's drawing is its own."""
        super().print(*map(_seen, objects), **options)

    def out(self, *objects: Any, **options: Any) -> None:
        """Print as Console.out does."""
        super().out(*map(_seen, objects), **options)


def _seen(value: Any) -> Any:
    return visible_lines(value) if isinstance(value, str) else value


stdout: Console = _Console(**_PLAIN)
if not stdout.is_terminal:
    stdout = _Console(**_PLAIN, width=1000)  # no folding in a file
stderr: Console = _Console(**_PLAIN, stderr=True)

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


_LINE_EVERY_S = 15.0


_job: "JobPaths | None" = None


def report_to(job: "JobPaths") -> None:
    """Tell this process that it is the command of a job: its JSON goes to files there, too."""
    global _job  # a process is the command of one job, and what it says is said in many places
    _job = job


def job_folder() -> "Path | None":
    """The folder of the job whose command this process is; None where it is no job's."""
    return None if _job is None else _job.folder


def emit_text(text: str, *, err: bool = False, end: str = "") -> None:
    """Print what programs read, to the character; on a terminal, what acts there is shown."""
    stream = stderr if err else stdout
    typer.echo((visible_lines(text) if stream.is_terminal else text) + end, nl=False, err=err)


def emit_json(data: object) -> None:
    """Print one JSON document, which is what the command ends with.

    Args:
        data: What JSON has, and schemas and mappings within it.
    """
    text = json.dumps(data, indent=2, ensure_ascii=False, default=document)
    if _job is not None:
        _keep(_job.result, json.loads(text))
    emit_text(text, end="\n")


def document(value: Any) -> dict[str, Any]:
    """A schema or a server's answer as JSON has it.

    Raises:
        TypeError: It is neither.
    """
    if hasattr(value, "model_dump"):  # a schema: pydantic is not imported for it
        body: dict[str, Any] = value.model_dump(mode="json")
        return body
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON: {value!r}")


def emit_progress(data: object) -> None:
    """Print a JSON line on the error output: how far the command is."""
    if _job is not None:
        _keep(_job.progress, data)
    emit_text(json.dumps(data, ensure_ascii=False), err=True, end="\n")


def _keep(path: "Path", data: object) -> None:
    from pipeline.jobs.request import write_json

    write_json(path, data)


def emit_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "") -> None:
    """Print a table; numbers stand to the right.

    What does not fit is wrapped between the words of sentences. A name stays whole, also where the
    table is then wider than the terminal: a name with a line end in it cannot be copied.
    """
    # Not by Rich's own table: of 200 rows that takes a tenth of a second.
    lines = [[_cell(value) for value in row] for row in rows]
    widths = _widths([columns, *lines], stdout.width)
    numbers = [
        bool(lines) and all(_is_number(line[index]) for line in lines)
        for index in range(len(columns))
    ]
    if title:
        stdout.out(title, style="italic", highlight=False)
    if any(columns):
        stdout.out(*_laid_out(columns, widths, numbers), sep="\n", style="bold", highlight=False)
    printed = [text for line in lines for text in _laid_out(line, widths, numbers)]
    if printed:
        stdout.out("\n".join(printed), highlight=False)


def _laid_out(
    cells: Sequence[str], widths: Sequence[int], numbers: Sequence[bool]
) -> Iterator[str]:
    """The lines of a row."""
    parts = [
        [text] if "\n" not in text and cell_len(text) <= width else _wrapped(text, width)
        for text, width in zip(cells, widths, strict=True)
    ]
    for number in range(max(map(len, parts), default=0)):
        line = []
        for cell, width, right in zip(parts, widths, numbers, strict=True):
            text = cell[number] if number < len(cell) else ""
            blanks = " " * (width - cell_len(text))
            line.append(blanks + text if right else text + blanks)
        yield (" " * _GAP).join(line).rstrip()


def _wrapped(text: str, width: int) -> list[str]:
    return [
        piece
        for line in text.splitlines()
        for piece in wrap(line, width, break_long_words=False, break_on_hyphens=False) or [""]
    ]


_GAP = 2
"""Blanks between two columns."""

_SENTENCE_WORDS = 5
"""Words of a text that is a sentence: "IBM COS" and "Traffic guide obj." are names."""


def _widths(lines: Sequence[Sequence[str]], room: int) -> list[int]:
    """Each column's width: as its longest text, less where sentences can be wrapped to fit."""
    columns = list(zip(*lines, strict=True))
    widths = [max(map(_widest_line, column), default=0) for column in columns]
    least = [max(map(_unbroken, column), default=0) for column in columns]
    while sum(widths) + _GAP * (len(widths) - 1) > room:
        widest = max(range(len(widths)), key=lambda i: widths[i] if widths[i] > least[i] else -1)
        if widths[widest] <= least[widest]:
            break
        widths[widest] -= 1
    return [max(width, 1) for width in widths]


def _widest_line(text: str) -> int:
    return max(map(cell_len, text.splitlines()), default=0)


def _unbroken(text: str) -> int:
    """Width of what must stay on one line."""
    words = text.split()
    return max(map(cell_len, words)) if len(words) >= _SENTENCE_WORDS else _widest_line(text)


def heading(text: str) -> None:
    """Print a heading: a rule on a terminal, a line of its own elsewhere."""
    if stdout.is_terminal:
        stdout.rule(Text(visible(text), style="bold"), align="left")
    else:
        stdout.print(f"\n== {text}")


@contextmanager
def progress_bar(title: str, *, quiet: bool) -> Iterator["Bar"]:
    """A bar on a terminal's error output; elsewhere a line there every 15 seconds."""
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        TimeElapsedColumn(),
        console=stderr,
        transient=True,
        disable=quiet or not stderr.is_terminal,
    )
    with progress:
        yield Bar(progress, visible(title), lines=not quiet and not stderr.is_terminal)


class Bar:
    """A bar that is told where things stand."""

    def __init__(self, progress: Progress, title: str, *, lines: bool) -> None:
        self._progress = progress
        self._task = progress.add_task(title, total=None, note="")
        self._title = title
        self._lines = lines
        self._printed = time.monotonic()

    def show(self, done: float, total: float | None = None, note: str = "") -> None:
        """Show ``done`` of ``total`` (unknown when None), with a note beside the bar."""
        note = visible(note)
        self._progress.update(self._task, completed=done, total=total, note=note)
        if self._lines and time.monotonic() - self._printed >= _LINE_EVERY_S:
            self._printed = time.monotonic()
            stderr.print(f"{self._title}: {note}")


def size(number: int) -> str:
    """A size for people: 12.3 MB."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= factor:
            return f"{number / factor:.1f} {unit}"
    return f"{number} bytes"


def duration(seconds: float) -> str:
    """A time for people: 42 s, 3 min, 2 h 5 min."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else visible(str(value))


def _is_number(text: str) -> bool:
    return bool(text) and text.replace(",", "").replace(".", "", 1).lstrip("-").isdigit()
