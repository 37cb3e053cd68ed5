"""framesift backend kubernetes: what an administrator applies once."""

from pathlib import Path
from typing import Annotated

import typer

from api.cli.options.common import open_workspace
from api.cli.terminal import emit_text
from catalog.errors import InvalidInput, StorageError

backend_app = typer.Typer(help="What clusters need before they take jobs.", no_args_is_help=True)


@backend_app.callback()
def _group() -> None:
    """Keep the names of the commands, although there is one."""


@backend_app.command()
def kubernetes(
    render: Annotated[Path, typer.Option(metavar="DIR", help="Folder that gets the YAML files.")],
    storage: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CLAIM=KIND:WHERE",
            help="Write a volume for a claim, too: nfs:SERVER:/PATH, scale:HANDLE or "
            "csi:DRIVER:HANDLE.",
        ),
    ] = None,
) -> None:
    """Write what an administrator of the cluster applies once: kubectl apply -f DIR."""
    from catalog.storage.atomic_write import atomic_write
    from pipeline.jobs.backends.kubernetes.render import rendered
    from pipeline.jobs.backends.kubernetes.settings import kubernetes_settings
    from pipeline.jobs.backends.kubernetes.yaml_text import yaml_text
    from pipeline.jobs.resources import Resources

    file = open_workspace().job_queue.backends
    settings = kubernetes_settings(file, Resources())
    if not settings.namespace:
        raise InvalidInput(
            f'namespace: nothing says where jobs run; expected namespace = "NAME" below '
            f"[kubernetes] in {file}"
        )
    things = rendered(settings, settings.namespace, storage or ())
    try:
        render.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{render}: cannot be made: {error.strerror}", str(render)) from error
    for number, thing in enumerate(things, 1):
        path = render / f"{number:02}-{thing['kind'].lower()}-{thing['metadata']['name']}.yaml"
        atomic_write(path, yaml_text(thing))
        emit_text(str(path), end="\n")
