"""Attacks on a served home, and what each took: a line in the summary (`make test-attacks`)."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.attacks.arena import Server, Watch, arena, watching
from tests.pipeline.homes import copy_home

MEMORY_MB = 4096
"""What the suite's server may take beyond what it takes at rest [MB]: there it dies."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder are attacks."""
    folder = f"{Path(__file__).parent}/"
    for item in items:
        if str(item.path).startswith(folder):
            item.add_marker("attacks")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for each attack."""
    lines = [
        line
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        for name, line in getattr(report, "user_properties", [])
        if name == "attack" and report.when == "call"
    ]
    if lines:
        terminalreporter.section("attacks")
    for line in lines:
        terminalreporter.write_line(line)


@pytest.fixture
def home(catalogued: Path, tmp_path: Path) -> Path:
    """A copy that a test may change, for an `arena` of its own."""
    return copy_home(catalogued, tmp_path)


@pytest.fixture(scope="session")
def attacked(catalogued: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server that all attacks share which need no settings of their own."""
    copied = copy_home(catalogued, tmp_path_factory.mktemp("attacked"))
    with arena(copied, memory_mb=MEMORY_MB) as server:
        yield server


class Watched(Protocol):
    """`watching` without the attack's name."""

    def __call__(
        self, server: Server, *, most_mb: float = 1024, most_healthz_s: float = 20
    ) -> contextlib.AbstractContextManager[Watch]:
        """See `watching`."""


@pytest.fixture
def watched(request: pytest.FixtureRequest) -> Watched:
    """Watch a server during a block: the test's attack, whose figures the summary shows."""
    return _named(request.node)


def _named(node: pytest.Item) -> Callable[..., contextlib.AbstractContextManager[Watch]]:
    @contextlib.contextmanager
    def named(
        server: Server, *, most_mb: float = 1024, most_healthz_s: float = 20
    ) -> Iterator[Watch]:
        limits = {"most_mb": most_mb, "most_healthz_s": most_healthz_s}
        watch = None
        try:
            with watching(server, node.name.removeprefix("test_"), **limits) as watch:
                yield watch
        finally:
            if watch is not None:
                node.user_properties.append(("attack", watch.line()))

    return named
