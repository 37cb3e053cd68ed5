"""Writes the tables of docs/measurements.md anew: `make bench`.

    python -m benchmarks.measurements [NAME...] [--list]

A table that a program prints stands between two marks, of which the first has the command:

    <!-- measured: python -m benchmarks.growth --steps 2 -->
    <!-- end measured -->

`.venv-bench/bin/python` in the place of `python` is for commands that need the peers which
`make bench-setup` installs; where they are not installed the table stays as it was.

What is between the marks is replaced by the machine's name and the command's output: tables in
Markdown as they are, other text as a block. NAME is part of a command, such as growth; all are run
without.
Text around the marks is written by hand.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent
PAGE = REPOSITORY / "docs/measurements.md"
_PEERS = ".venv-bench/bin/python"
_SECTION = re.compile(
    r"(<!-- measured: ((?:\.venv-bench/bin/)?python -m [^\n]+?) -->\n)(.*?)(<!-- end measured -->)",
    re.DOTALL,
)


def main() -> None:
    """Run the commands of the page, and write what they print into it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of commands; all commands without")
    parser.add_argument("--list", action="store_true", help="only print the commands")
    options = parser.parse_args()
    chosen = [
        command
        for command in commands(PAGE.read_text())
        if not options.names or any(name in command for name in options.names)
    ]
    if options.names and not chosen:
        raise SystemExit(f"{' '.join(options.names)}: in no command of {PAGE}; see --list")
    for command in chosen:
        print(command, flush=True)
        if command.startswith(_PEERS) and not (REPOSITORY / _PEERS).exists():
            print("left out: its peers are not installed; make bench-setup does that")
        elif not options.list:
            output = _output(command)
            PAGE.write_text(with_output(PAGE.read_text(), command, f"{_machine()}\n\n{output}"))


def commands(page: str) -> list[str]:
    """The commands of the page's marks."""
    return [match[2] for match in _SECTION.finditer(page)]


def with_output(page: str, command: str, output: str) -> str:
    """The page with other text between the marks of a command."""

    def section(match: re.Match[str]) -> str:
        return f"{match[1]}{output}\n{match[4]}" if match[2] == command else match[0]

    return _SECTION.sub(section, page)


def in_markdown(output: str) -> str:
    """Tables as they are, and blocks of other lines."""
    blocks = []
    for block in re.split(r"\n\s*\n", output.strip("\n")):
        lines = block.splitlines()
        is_markdown = any(line.startswith("|") for line in lines)
        if is_markdown:
            head = [line for line in lines if not line.startswith("|")]
            table = [line for line in lines if line.startswith("|")]
            blocks.append("\n\n".join(filter(None, ["\n".join(head), "\n".join(table)])))
        else:
            blocks.append("\n".join(f"    {line}" for line in lines))
    return "\n\n".join(blocks)


def _output(command: str) -> str:
    program, *arguments = shlex.split(command)
    run = subprocess.run(
        [program if program == _PEERS else sys.executable, *arguments],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if run.returncode:
        raise SystemExit(f"{command} ended with {run.returncode}; the page has what it had")
    return in_markdown(run.stdout)


def _machine() -> str:
    """Name, cores and memory of this machine, its load, and the day."""
    names = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = os.getloadavg()[1]
    return (
        f"{names[0] if names else os.uname().machine}, {os.cpu_count()} cores, {memory:.0f} GiB; "
        f"load {load:.1f}; {datetime.now(UTC):%Y-%m-%d}"
    )


if __name__ == "__main__":
    main()
