"""The options of a job that begins with a question, in a dataset's place."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any

import typer

from api.cli.options.question_options import QuestionOptions, question_of
from api.cli.options.set_options import DivisionOptions, division_of
from catalog.errors import InvalidInput


@dataclass(frozen=True)
class FrameOptions(DivisionOptions, QuestionOptions):
    """Options that choose a job's frames by a question, and divide them."""

    divide: Annotated[
        str | None,
        typer.Option(
            metavar="SHARES",
            help="Divide chosen frames into splits, such as train=0.8,validation=0.2.",
        ),
    ] = None


@dataclass(frozen=True)
class TrainFrameOptions(FrameOptions):
    """Those of a training, whose own --seed and --model say something else."""

    seed: Annotated[
        int | None,
        typer.Option("--sample-seed", help="Seed of --sample and --divide; 0 unless given."),
    ] = None
    model: Annotated[
        str | None,
        typer.Option(
            "--scored-model",
            help="A model whose scores were imported: uncertainty, margin, miou, accuracy and loss "
            "are its own; --where takes confusion(TRUTH, PREDICTED).",
        ),
    ] = None


def frames_of(group: type[FrameOptions], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an order that say which frames a question chooses; none for no question.

    Args:
        group: The command's options of questions.
        parameters: All of the command.

    Raises:
        InvalidInput: An option's value cannot be used, or there is nothing to divide.
    """
    options = {field.name: parameters[field.name] for field in fields(group)}
    shares = options.pop("divide")
    question = {
        field.name: options[field.name]
        for field in fields(QuestionOptions)
        if options[field.name] not in (None, ())  # click has () where an option is not there
    }
    chosen: dict[str, Any] = {}
    if question:
        chosen["question"] = question_of(QuestionOptions(**question)).model_dump(
            mode="json", exclude_defaults=True
        )
    own = {field.name: options[field.name] for field in fields(DivisionOptions)}
    division = DivisionOptions(**own)
    if shares is not None:
        chosen["divide"] = {"split": shares, **division_of(division)}
        if options["seed"] is not None:
            chosen["divide"]["seed"] = options["seed"]
    elif division != DivisionOptions():
        different = next(
            name for name, value in asdict(division).items() if value != _UNDIVIDED[name]
        )
        raise InvalidInput(
            f"--{different.replace('_', '-')}: goes with --divide, such as "
            "--divide train=0.8,validation=0.2"
        )
    return chosen


_UNDIVIDED = asdict(DivisionOptions())
