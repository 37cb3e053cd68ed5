"""framesift run."""

from pathlib import Path
from typing import Annotated

import typer

from api.cli import destination
from api.cli.commands.jobs.follow import follow
from api.cli.commands.jobs.frame_options import (
    FrameOptions,
    dataset_or_question,
    with_frame_options,
)
from api.cli.commands.jobs.options import (
    AttemptsOption,
    BackendOption,
    DetachFlag,
    NameOption,
    NoStageFlag,
    present,
)
from api.cli.commands.jobs.resources import (
    DryRunFlag,
    OptionOption,
    ResourceOption,
    begun,
    resources_of,
)
from api.cli.target import target
from api.cli.terminal import JsonFlag


@with_frame_options
def run(
    frame_options: FrameOptions,
    command: Annotated[
        str,
        typer.Option(
            metavar="COMMAND",
            help="Program and arguments, quoted as for a shell, which reads none of it. {files}, "
            "{files:SPLIT}, {classes}, {manifest}, {prepared} and {job} stand for paths.",
        ),
    ],
    dataset: Annotated[
        str | None,
        typer.Argument(help="NAME, or NAME@VERSION; else options such as --range choose frames."),
    ] = None,
    ranks: Annotated[int, typer.Option(min=1, help="Processes of it, at once.")] = 1,
    split: Annotated[
        str | None, typer.Option(help="Split whose frames it is given; all by default.")
    ] = None,
    prepare: Annotated[
        str | None,
        typer.Option(
            metavar="WIDTHxHEIGHT", help="Decode the frames once at this size, for {prepared}."
        ),
    ] = None,
    folder: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Where it runs; here by default, and on a server in the folder of its outputs.",
        ),
    ] = None,
    name: NameOption = None,
    backend: BackendOption = "local",
    resource: ResourceOption = None,
    option: OptionOption = None,
    dry_run: DryRunFlag = False,
    no_stage: NoStageFlag = False,
    attempts: AttemptsOption = 1,
    detach: DetachFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Run a program of your own on a dataset, as a job; what it makes in {job} is collected.

    On a dataset, or on the frames that options such as --range choose, which are saved as one.
    """
    if destination.server() is None:
        folder = str(Path(folder or ".").absolute())
    options = present(
        ranks=ranks,
        split=split,
        prepare=prepare,
        folder=folder,
        name=name,
        backend=backend,
        resources=resources_of(backend, resource, option),
        stage=False if no_stage else None,
        attempts=attempts if attempts > 1 else None,
    )
    jobs = target().jobs
    options |= {**dataset_or_question(dataset, frame_options), "command": command}
    follow(jobs, begun(jobs, "run", dry_run, options, as_json), detach, as_json)
