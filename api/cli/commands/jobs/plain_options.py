"""The options of a command that begins a job which chooses no frames."""

import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from api.cli.commands.jobs.job_options import DryRunFlag, Following, parameter
from api.cli.commands.jobs.resources import OptionOption, ResourceOption, resources_of
from api.cli.options.common import DetachFlag
from api.cli.options.order_options import OrderOptions
from api.cli.terminal import JsonFlag
from pipeline.runs.job_order import JobOrder
from pipeline.runs.setting import rows

_LAST = ("name", "backend", "attempts")


def plain_command(
    order: type[JobOrder], begin: Callable[[JobOrder, Following], None]
) -> Callable[..., None]:
    """The command that hands an order to a function, by whose docstring it is described.

    Args:
        order: The kind's.
        begin: The function.
    """
    own = OrderOptions(order, {row.name for row in rows(order)}.difference(_LAST).__contains__)
    shared = OrderOptions(order, _LAST.__contains__)

    @wraps(begin)
    def command(**parameters: Any) -> None:
        resources = resources_of(
            parameters["backend"], parameters["resource"], parameters["option"]
        )
        values = {**own.values(parameters), **shared.values(parameters), "resources": resources}
        how = Following(*(parameters[name] for name in ("dry_run", "detach", "as_json")))
        begin(order(**values), how)

    parameters = [*_parameters(own, shared)]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


def _parameters(own: OrderOptions, shared: OrderOptions) -> Iterator[inspect.Parameter]:
    yield from own.parameters()
    yield from shared.parameters("name", "backend")
    yield parameter("resource", ResourceOption, None)
    yield parameter("option", OptionOption, None)
    yield parameter("dry_run", DryRunFlag, False)
    yield from shared.parameters("attempts")
    yield parameter("detach", DetachFlag, False)
    yield parameter("as_json", JsonFlag, False)
