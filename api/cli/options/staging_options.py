"""Options of the commands that stage."""

from pathlib import Path
from typing import Annotated

import typer

from api.cli.options.order_options import option_of
from api.schemas.home_orders import Staging

CacheOption = Annotated[
    Path | None, typer.Option("--cache", help="Folder of the cache; FRAMESIFT_CACHE by default.")
]
WorkersOption = Annotated[int, option_of(Staging, "workers")]
