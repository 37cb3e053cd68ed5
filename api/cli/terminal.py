"""Output for people on the terminal, and for programs with --json."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from catalog.text.visible_text import visible, visible_lines

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


def emit_text(text: str, *, err: bool = False, end: str = "") -> None:
    """Print what programs read, to the character; on a terminal, what acts there is shown."""
    stream = stderr if err else stdout
    typer.echo((visible_lines(text) if stream.is_terminal else text) + end, nl=False, err=err)


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
