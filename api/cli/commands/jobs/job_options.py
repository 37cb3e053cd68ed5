"""The options of the commands that begin a job on a dataset, and the order that they make."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from typing import Annotated, Any

import typer

from api.cli.commands.jobs.frame_options import (
    FrameOptions,
    TrainFrameOptions,
    frames_of,
)
from api.cli.commands.jobs.resources import OptionOption, ResourceOption, resources_of
from api.cli.options.common import DetachFlag
from api.cli.options.grouped_options import option_parameters
from api.cli.options.order_options import OrderOptions
from api.cli.terminal import JsonFlag
from pipeline.runs.orders import FramesOrder, Order
from pipeline.runs.setting import rows

DryRunFlag = Annotated[
    bool, typer.Option("--dry-run", help="Print what the backend would be handed, and end.")
]
_MODEL, _IN_ITS_PLACE = "model", ("predictions", "scores")
_ARGUMENT = "model_name"
"""Parameter of the argument MODEL."""


@dataclass(frozen=True)
class Following:
    """A command's dealing with the jobs that it begins."""

    dry_run: bool
    """They are described, and not begun."""
    detach: bool
    """Nobody follows them to their ends."""
    as_json: bool
    """They are printed as JSON."""


Begin = Callable[[Sequence[Any], Following], None]


class JobOptions:
    """The options and arguments of a command that begins a job of one kind.

    Attributes:
        order: The kind's orders.
    """

    def __init__(
        self,
        order: type[FramesOrder],
        dataset_help: str,
        *,
        several: bool = False,
        adjust: Callable[[Any], FramesOrder] = lambda order: order,
    ) -> None:
        """Those of a kind.

        Args:
            order: Its orders.
            dataset_help: Words for its argument DATASET.
            several: Whether it takes several datasets, and begins a job on each.
            adjust: Makes of an order the one that counts where the command is given.
        """
        shared = {row.name for row in rows(Order)}
        own = {row.name for row in rows(order)} - shared
        if order.is_of_model:
            own -= {_MODEL}  # an argument
        self.order, self._several, self._adjust = order, several, adjust
        self._dataset_help = dataset_help
        self._shared = OrderOptions(order, shared.__contains__)
        self._frames = TrainFrameOptions if "seed" in own else FrameOptions
        frame_options = [field.name for field in fields(self._frames)]
        self._own = OrderOptions(order, own.__contains__, [*frame_options, _ARGUMENT])

    def command(self, begin: Begin) -> Callable[..., None]:
        """The command that hands the orders to a function, by whose docstring it is described."""

        @wraps(begin)
        def command(**parameters: Any) -> None:
            if self.order.is_of_model and not (
                parameters[_ARGUMENT] or any(map(parameters.get, _IN_ITS_PLACE))
            ):
                raise typer.BadParameter("give MODEL, or --predictions", param_hint="MODEL")
            how = Following(*(parameters[name] for name in ("dry_run", "detach", "as_json")))
            begin(self.orders(parameters), how)

        parameters = [*self._parameters()]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in parameters}
        command.job_options = self  # type: ignore[attr-defined]
        return command

    def orders(self, parameters: Mapping[str, Any]) -> list[FramesOrder]:
        """The orders that a command line makes: one, or one on each of its datasets.

        Raises:
            InvalidInput: An option's value cannot be used.
        """
        frames = frames_of(self._frames, parameters)
        needs = parameters["resource"], parameters["option"]
        values = {
            **self._own.values(parameters),
            **self._shared.values(parameters),
            **frames,
            "resources": resources_of(parameters["backend"], *needs),
        }
        dataset = parameters["dataset"]
        datasets = [*(dataset or ())] if self._several else [dataset]
        if self.order.is_of_model:
            model = parameters[_ARGUMENT]
            if any(values.get(name) is not None for name in _IN_ITS_PLACE):
                datasets = [*([model] if model else []), *datasets]  # the first is none's
            else:
                values[_MODEL] = model
        datasets = datasets or [None]
        return [self._adjust(self.order(**values, dataset=each)) for each in datasets]

    def _parameters(self) -> Iterator[inspect.Parameter]:
        yield from option_parameters(self._frames)
        yield from self._shared.parameters("save_as", "evict", "migrate")
        if self.order.is_of_model:
            takes_predictions = any(row.name in _IN_ITS_PLACE for row in rows(self.order))
            if takes_predictions:
                yield parameter(_ARGUMENT, Annotated[str | None, _model_argument()], None)
            else:
                yield parameter(_ARGUMENT, Annotated[str, _model_argument()])
        dataset = typer.Argument(help=self._dataset_help)
        if self._several:
            several = typer.Argument(metavar="[DATASET]...", help=self._dataset_help)
            yield parameter("dataset", Annotated[list[str] | None, several], None)
        else:
            yield parameter("dataset", Annotated[str | None, dataset], None)
        yield from self._own.parameters()
        yield from self._shared.parameters("name", "backend")
        yield parameter("resource", ResourceOption, None)
        yield parameter("option", OptionOption, None)
        yield parameter("dry_run", DryRunFlag, False)
        yield from self._shared.parameters("stage")
        yield from self._shared.parameters("start_after")
        yield from self._shared.parameters("attempts")
        yield parameter("detach", DetachFlag, False)
        yield parameter("as_json", JsonFlag, False)


def _model_argument() -> Any:
    return typer.Argument(
        metavar="MODEL",
        help="A training job's name, or a model folder; with @STEP a checkpoint, with @best the "
        "best one.",
    )


def parameter(
    name: str, annotation: Any, default: Any = inspect.Parameter.empty
) -> inspect.Parameter:
    """A parameter of a command, as Typer reads it from its signature."""
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )
