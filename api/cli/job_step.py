"""A step of a job on the home's machine: ``python -m api.cli.job_step FOLDER STEP``.

FOLDER is the job's. What it does, api.services.jobs.steps says.
"""

import sys
from pathlib import Path

from api.cli.target import home_session
from catalog.errors import FramesiftError


def main(folder: str, step: str) -> int:
    """Do the step; the exit status."""
    from api.services.jobs.steps import do_step  # with the home's stores

    try:
        do_step(home_session().whole, Path(folder), step, _say)
    except FramesiftError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
