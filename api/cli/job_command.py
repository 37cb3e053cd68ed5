"""A command as a job: ``python -m api.cli.job_command FOLDER COMMAND ARGUMENT...``.

What it ends with is in the job folder's result.json, and how far it is in progress.json.
"""

import sys
from pathlib import Path

from api.cli import main as command_line
from api.cli import terminal
from api.cli.target import home_session
from catalog.errors import FramesiftError
from pipeline.jobs.request import JobPaths


def main() -> None:
    """Run the command line that stands behind the folder."""
    from api.services.jobs.owners import check_begin  # with the home's stores

    _, folder, *arguments = sys.argv
    try:
        check_begin(home_session().whole, Path(folder).name)
    except FramesiftError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(1)
    terminal.report_to(JobPaths(Path(folder)))
    sys.argv = ["framesift", *arguments]
    command_line.main()


if __name__ == "__main__":
    main()
