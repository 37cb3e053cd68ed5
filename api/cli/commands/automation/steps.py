"""The jobs of a trigger, as `--then` names them: the words of train, validate, predict and run."""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from importlib import import_module
from typing import Any, cast

import typer
from typer.core import TyperCommand
from typer.main import get_command

from api.cli.target import INSTEAD, Target
from catalog.errors import InvalidInput, UnknownName
from pipeline.jobs.queue import OF_DATASETS

THEN = "--then"

_NOT_OF_STEPS = ("name", "detach", "as_json", "dry_run")
_LEFT_OUT = ""
"""In place of a dataset or model that the trigger itself knows."""

WORDS: ContextVar[Sequence[Sequence[str]]] = ContextVar("words", default=())


class WithSteps(TyperCommand):
    """A command whose line ends with `--then KIND ...`, once or several times."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the words behind each --then, and read the others as options."""
        parts: list[list[str]] = [[]]
        for word in args:
            if word == THEN:
                parts.append([])
            else:
                parts[-1].append(word)
        WORDS.set(parts[1:])
        return super().parse_args(ctx, parts[0])


def steps() -> list[dict[str, Any]]:
    """The requests of the jobs that the command line names.

    Raises:
        InvalidInput: It names none, or one that a trigger cannot begin.
    """
    if not WORDS.get():
        raise InvalidInput(
            f"trigger add: which job? End the line with {THEN} and a command's words, such as "
            f"{THEN} train --max-steps 300"
        )
    return [_step(words) for words in WORDS.get()]


class _Asked(Exception):
    """The request of a job, in place of the job."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        super().__init__()
        self.request = {key: value for key, value in request.items() if value != _LEFT_OUT}


class _Asking:
    """Stands where a command has a home or a server, and says what it was asked for."""

    @property
    def jobs(self) -> "_Asking":
        """Itself."""
        return self

    def train(self, dataset: str, **options: Any) -> None:
        """Say it."""
        raise _Asked({"kind": "train", "dataset": dataset, **options})

    def validate(self, model: str, dataset: str, **options: Any) -> None:
        """Say it."""
        raise _Asked({"kind": "validate", "model": model, "dataset": dataset, **options})

    def predict(self, model: str, dataset: str, **options: Any) -> None:
        """Say it."""
        raise _Asked({"kind": "predict", "model": model, "dataset": dataset, **options})

    def run(self, dataset: str, command: str, **options: Any) -> None:
        """Say it."""
        raise _Asked({"kind": "run", "dataset": dataset, "command": command, **options})


def _step(words: Sequence[str]) -> dict[str, Any]:
    """The request of one job: its own command reads the words."""
    kind = words[0] if words else ""
    if kind not in OF_DATASETS:
        raise UnknownName("job", kind, OF_DATASETS)
    alone = typer.Typer(rich_markup_mode=None, add_completion=False)
    alone.command()(getattr(import_module(f"api.cli.commands.jobs.{kind}"), kind))
    command = get_command(alone)
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    for argument in arguments:
        argument.required = False
    context = command.make_context(f"trigger add ... {THEN} {kind}", [*words[1:]])
    for name in _NOT_OF_STEPS:
        if context.params.get(name):
            option = "json" if name == "as_json" else name.replace("_", "-")
            raise InvalidInput(
                f"{THEN} {kind} --{option}: a trigger names its jobs, and nobody follows them; "
                "leave it out"
            )
    for argument in arguments:
        several = argument.nargs != 1
        value = context.params[argument.name] or ([_LEFT_OUT] if several else _LEFT_OUT)
        if several and len(value) > 1:
            raise InvalidInput(
                f"{THEN} {kind} ... {' '.join(value)}: expected one dataset; write {THEN} {kind} "
                "for each"
            )
        context.params[argument.name] = value
    token = INSTEAD.set(cast("Target", _Asking()))
    try:
        with context:
            command.invoke(context)
    except _Asked as asked:
        return asked.request
    finally:
        INSTEAD.reset(token)
    raise AssertionError(f"{kind} begins a job")
