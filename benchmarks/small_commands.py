"""CPU time of small commands, which is mostly that of their imports.

    python -m benchmarks.small_commands [--rounds 5] [--home HOME] [--beside PROGRAM]

A home with one source by default. The commands take turns; seconds of CPU, the least and in
brackets the median, with --beside those of another version's program `framesift` and the ratio.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

_LISTS = (
    "jobs list", "dataset list", "source list", "models list", "collection list", "policy list",
    "trigger list", "user list", "webhook list", "token list", "scans list", "stagings list",
    "audit", "jobs usage", "stagings running", "cache status",
)  # fmt: skip
_OTHERS = ("info", "tags list", "tags families", "select --help", "--version")
_COMPLETED = ("select --cam", "jobs li")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--beside", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        home = options.home or Path(scratch, "home")
        here = shutil.which("framesift", path=str(Path(sys.executable).parent))
        programs = [str(here), *([str(options.beside)] if options.beside else [])]
        if options.home is None:
            folder = Path(scratch, "frames")
            folder.mkdir()
            _run([programs[0], "source", "add", "frames", str(folder)], home, {})
        rows: list[tuple[str, list[list[str]], dict[str, str]]] = [
            ("python -c pass", [[sys.executable, "-c", "pass"]], {}),
            ("import httpx", [[sys.executable, "-c", "import httpx"]], {}),
            ("import framesift", [[sys.executable, "-c", "import framesift"]], {}),
        ]
        for words in (*_LISTS, *_OTHERS):
            rows.append((words, [[program, *words.split()] for program in programs], {}))
        for words in _COMPLETED:
            typed = {"_FRAMESIFT_COMPLETE": "complete_bash", "COMP_WORDS": f"framesift {words}"}
            typed["COMP_CWORD"] = "2"
            rows.append((f"completion of {words}", [[program] for program in programs], typed))
        _print(rows, home, options.rounds)


def _print(
    rows: list[tuple[str, list[list[str]], dict[str, str]]], home: Path, rounds: int
) -> None:
    seconds: dict[tuple[int, int], list[float]] = {}
    for _ in range(rounds):
        for row, (_, commands, variables) in enumerate(rows):
            for column, command in enumerate(commands):
                seconds.setdefault((row, column), []).append(_run(command, home, variables))
    beside = (
        [" beside |", " ratio of medians |"] if any(len(row[1]) > 1 for row in rows) else ["", ""]
    )
    print(f"| CPU s: least (median) | this version |{''.join(beside)}")
    print("|---|---|" + "---|" * len([one for one in beside if one]))
    for row, (title, commands, _) in enumerate(rows):
        times = [seconds[row, column] for column in range(len(commands))]
        shown = " | ".join(f"{min(one):.3f} ({median(one):.3f})" for one in times)
        ratio = f" | {median(times[0]) / median(times[1]):.2f}" if len(times) > 1 else ""
        print(f"| `{title}` | {shown}{ratio} |", flush=True)


def _run(command: list[str], home: Path, variables: dict[str, str]) -> float:
    """CPU time of a command [s]."""
    environment = dict(os.environ)
    # Images often set it; each command would compile its modules.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        command,
        env={**environment, "FRAMESIFT_HOME": str(home), **variables},
        check=True,
        capture_output=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
