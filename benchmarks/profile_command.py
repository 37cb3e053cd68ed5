"""Where the time of one framesift command goes: make profile CMD="select --limit 3".

Threads count; processes that the command starts (scans, jobs, workers of a server) do not. Every
call costs more than without a profile: functions of many short calls look worse than they are.
"""

import cProfile
import pstats
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

MOST = 25
"""Functions in each of the two tables."""


def main(file: Path, words: list[str]) -> None:
    """Run a command, write its profile into a file, and print its most costly functions."""
    profiles = [cProfile.Profile()]

    def in_thread(_frame: FrameType, _event: str, _argument: Any) -> None:
        profiles.append(cProfile.Profile())
        profiles[-1].enable()  # replaces this function in its thread

    threading.setprofile(in_thread)
    sys.argv = ["framesift", *words]
    profiles[0].enable()
    try:
        from api.cli.main import main as run  # the command's imports count

        run()
    finally:
        threading.setprofile(None)
        profiles[0].disable()
        stats = pstats.Stats(*profiles, stream=sys.stderr).strip_dirs()
        pstats.Stats(*profiles).dump_stats(file)
        for order in ("tottime", "cumulative"):
            stats.sort_stats(order).print_stats(MOST)
        print(f"{file}: for snakeviz, gprof2dot or python -m pstats", file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
