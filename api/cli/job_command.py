"""A command as a job: ``python -m api.cli.job_command FOLDER COMMAND ARGUMENT...``.

What it ends with is in the job folder's result.json, and how far it is in progress.json.
"""

import sys
from pathlib import Path

from api.cli import main as command_line
from api.cli import terminal
from pipeline.jobs.request import JobPaths


def main() -> None:
    """Run the command line that stands behind the folder."""
    _, folder, *arguments = sys.argv
    terminal.report_to(JobPaths(Path(folder)))
    sys.argv = ["framesift", *arguments]
    command_line.main()


if __name__ == "__main__":
    main()
