"""Costs of each test and each fixture in CPU time, with the processes that they started.

`make test-profile` writes the most costly ones at its end. A server's work between two tests counts
for the later one, collecting all tests for a worker's first.
"""

import json
import os
import sys
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

_TICK = os.sysconf("SC_CLK_TCK")


class Spent:
    """Writes, to a file of this process, the CPU seconds of each fixture and each test's phases."""

    def __init__(self, folder: Path) -> None:
        """Make ``folder``, where it is missing."""
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / f"{os.getpid()}.jsonl").open("w")
        self._open: list[float] = []  # of each fixture being made, what those within it took
        self._before, self._began = _cpu_s(os.getpid()), time.monotonic()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: "pytest.FixtureDef[object]"
    ) -> Generator[None, object, object]:
        """Write what a fixture took without those that it asks for."""
        before, began = _cpu_s(os.getpid()), time.monotonic()
        self._open.append(0.0)
        try:
            return (yield)
        finally:
            cpu, inner = _cpu_s(os.getpid()) - before, self._open.pop()
            if self._open:
                self._open[-1] += cpu
            name = f"{fixturedef.func.__module__}.{fixturedef.argname} ({fixturedef.scope})"
            self._write(name, "fixture", cpu - inner, time.monotonic() - began)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write what was spent since the phase before."""
        now, ended = _cpu_s(os.getpid()), time.monotonic()
        self._write(report.nodeid, report.when, now - self._before, ended - self._began)
        self._before, self._began = now, ended

    def _write(self, name: str, phase: str, cpu_s: float, wall_s: float) -> None:
        line = {"name": name, "phase": phase, "cpu_s": round(cpu_s, 2), "wall_s": round(wall_s, 2)}
        print(json.dumps(line), file=self._file, flush=True)


def _cpu_s(process: int) -> float:
    """CPU seconds of a process and all below it, with those that have ended and were waited for.

    The kernel lists a thread's children: to look through all processes took 20 ms, a third of what
    a small test takes.
    """
    return sum(_ticks(process)) / _TICK


def _ticks(process: int) -> Iterator[int]:
    try:
        yield sum(
            map(int, Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:15])
        )
        threads = list(Path(f"/proc/{process}/task").iterdir())
    except OSError:  # it has just ended
        return
    for thread in threads:
        try:
            children = (thread / "children").read_text().split()
        except OSError:
            continue
        for child in children:
            yield from _ticks(int(child))


def _summary(folder: Path, most: int) -> Iterator[str]:
    """The most costly files, fixtures and tests of a run."""
    spent: dict[str, dict[str, list[float]]] = {}
    for path in folder.glob("*.jsonl"):
        for line in path.read_text().splitlines():
            entry = json.loads(line)
            kind = "fixtures" if entry["phase"] == "fixture" else "tests"
            spent.setdefault(kind, {}).setdefault(entry["name"], []).append(entry["cpu_s"])
    for name, phases in spent.get("tests", {}).items():
        spent.setdefault("files", {}).setdefault(name.split("::")[0], []).append(sum(phases))
    for kind, named in spent.items():
        yield f"{kind}: {sum(map(sum, named.values())):.0f} s of CPU"
        for name, each in sorted(named.items(), key=lambda entry: -sum(entry[1]))[:most]:
            times = "" if kind == "tests" else f"{len(each):5}"
            yield f"{sum(each):8.1f}{times} {name}"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in _summary(Path(sys.argv[1]), int(sys.argv[2])))
