"""What a user's program has measured by now, by the files in its folder {job}."""

import math
from contextlib import suppress
from pathlib import Path
from typing import Any

from catalog.errors import BadFile
from pipeline.jobs.program.checkpoints import checkpoints_of
from pipeline.jobs.program.made import output_document
from pipeline.jobs.program.scalars import Scalars, scalars_of


def program_metrics(folder: Path) -> dict[str, Any]:
    """The metrics of a program's job while it runs, with its checkpoints, and warnings.

    Args:
        folder: The job's.
    """
    scalars, checkpoints = scalars_of(folder), checkpoints_of(folder)
    lists = {
        "checkpoints": [each.as_json() for each in checkpoints.whole],
        "warnings": [*scalars.warnings, *checkpoints.warnings],
    }
    return {
        **measured_values(folder, scalars),
        **{name: values for name, values in lists.items() if values},
    }


def measured_values(folder: Path, scalars: Scalars) -> dict[str, Any]:
    """The last values that a program logged, and what its metrics.json says in their place."""
    document: dict[str, Any] = {}
    with suppress(BadFile):  # it is being written, or none
        document = output_document(folder, "metrics.json")
    return {
        **scalars.metrics,
        **{
            str(name): value
            for name, value in document.items()
            if isinstance(value, str | bool | int)
            or (isinstance(value, float) and math.isfinite(value))
        },
    }
