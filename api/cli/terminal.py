"""Output for people on the terminal, and for programs with --json."""

import json
import os
import sys
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from catalog.text.visible_text import visible, visible_lines

if TYPE_CHECKING:
    from rich.console import Console

_PLAIN: dict[str, Any] = {  # names are shown as they are: no [markup], no :emoji:
    "highlight": False,
    "soft_wrap": True,
    "markup": False,
    "emoji": False,
}

_WIDTH = 1000
"""Columns of what is no terminal: no folding in a file."""


class _LateConsole:
    """Rich's Console, which is imported when something is drawn: commands in pipes do without.

    It shows what of a text would act on the terminal: see catalog.text.visible_text.
    """

    def __init__(self, *, err: bool) -> None:
        self._err = err

    @property
    def is_terminal(self) -> bool:
        """As Console's."""
        stream = sys.stderr if self._err else sys.stdout
        is_file = stream is not None and not stream.closed and not stream.isatty()
        if is_file and not {"TTY_COMPATIBLE", "FORCE_COLOR"} & os.environ.keys():
            return False
        return self.console.is_terminal

    @cached_property
    def console(self) -> "Console":
        """Rich's."""
        from rich.console import Console

        console = Console(**_PLAIN, stderr=self._err)
        if self._err or console.is_terminal:
            return console
        return Console(**_PLAIN, width=_WIDTH)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as Console.print does; texts are made safe, Rich's drawing is its own."""
        texts = [*map(_seen, objects)]
        if options.items() <= _PLAIN.items() and self._shows_as_it_stands(texts):
            self._write(" ".join(texts))
        else:
            self.console.print(*texts, **options)

    def out(self, *objects: Any, **options: Any) -> None:
        """Print as Console.out does."""
        texts = [*map(_seen, objects)]
        if options.keys() <= {"sep", "style", "highlight"} and self._shows_as_it_stands(texts):
            self._write(options.get("sep", " ").join(texts))
        else:
            self.console.out(*texts, **options)

    @property
    def encoding(self) -> str:
        """As Console's."""
        stream = sys.stderr if self._err else sys.stdout
        return (getattr(stream, "encoding", None) or "utf-8").lower()

    @property
    def width(self) -> int:
        """As Console's."""
        return self.console.width if self._draws else _WIDTH

    @property
    def _draws(self) -> bool:
        """Whether Rich is needed: on a terminal, and where it may have begun a drawing."""
        return self._err or self.is_terminal or "console" in self.__dict__

    def _shows_as_it_stands(self, texts: list[Any]) -> bool:
        """Whether Rich would print nothing but these texts."""
        plain = all(isinstance(text, str) and "\t" not in text for text in texts)
        return plain and not self._draws

    def _write(self, text: str) -> None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.console, name)


def _seen(value: Any) -> Any:
    return visible_lines(value) if isinstance(value, str) else value


stdout = cast("Console", _LateConsole(err=False))
stderr = cast("Console", _LateConsole(err=True))


def stderr_console() -> "Console":
    """Rich's own console of `stderr`, for what Rich draws."""
    return cast(_LateConsole, stderr).console


JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def emit_text(text: str | bytes, *, err: bool = False, end: str = "") -> None:
    """Print what programs read; on a terminal, what acts there is shown.

    Args:
        text: In UTF-8, it is printed to the character; a text loses what would colour a terminal,
            where it goes to none.
    """
    stream = stderr if err else stdout
    if stream.is_terminal:
        text = visible_lines(text.decode() if isinstance(text, bytes) else text)
    data = text + end if isinstance(text, str) else text + end.encode()
    typer.echo(data, nl=False, err=err)


def emit_json(data: object) -> None:
    """Print one JSON document, which is what the command ends with.

    Args:
        data: What JSON has, and schemas and mappings within it.
    """
    emit_text(json.dumps(data, indent=2, ensure_ascii=False, default=document), end="\n")


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


def heading(text: str) -> None:
    """Print a heading: a rule on a terminal, a line of its own elsewhere."""
    if stdout.is_terminal:
        from rich.text import Text

        stdout.rule(Text(visible(text), style="bold"), align="left")
    else:
        stdout.print(f"\n== {text}")


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
