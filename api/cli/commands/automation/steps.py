"""The jobs of a trigger, as `--then` names them: the words of train, validate, predict and run."""

from collections.abc import Sequence
from contextvars import ContextVar
from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand
from typer.main import get_command

from catalog.errors import InvalidInput, UnknownName

if TYPE_CHECKING:
    from api.cli.commands.jobs.job_options import JobOptions

THEN = "--then"

_NOT_OF_STEPS = ("name", "detach", "as_json", "dry_run")

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
    if not all(WORDS.get() or [()]):
        raise InvalidInput(
            f"trigger add: which job? End the line with {THEN} and a command's words, such as "
            f"{THEN} train --max-steps 300"
        )
    return [_step(words) for words in WORDS.get()]


def _step(words: Sequence[str]) -> dict[str, Any]:
    """The order of one job, as JSON: its own command reads the words."""
    from pipeline.runs.orders import ORDERS  # --help and lists of triggers do without

    kind = words[0] if words else ""
    if kind not in ORDERS:
        raise UnknownName("job", kind, ORDERS)
    module = import_module(f"api.cli.commands.jobs.{kind}")
    alone = typer.Typer(rich_markup_mode=None, add_completion=False)
    alone.command()(getattr(module, kind))
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
    options: JobOptions = module.OPTIONS
    orders = options.orders(context.params)
    if len(orders) > 1:
        datasets = " ".join(str(order.dataset) for order in orders)
        raise InvalidInput(
            f"{THEN} {kind} ... {datasets}: expected one dataset; write {THEN} {kind} for each"
        )
    step = orders[0].as_json()
    return {name: value for name, value in step.items() if value is not None}
