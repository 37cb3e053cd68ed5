"""A real PostgreSQL for tests, started once per process; Debian's package is `postgresql`."""

import atexit
import contextlib
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from catalog.storage.postgres import Postgres
from tests.api.servers import wait_until
from tests.ingest.s3_server import free_port

USER = "frame sift"
PASSWORD = "p@ss/w'ord %"
"""Every character that could end a URL's part, a text of SQL or a keyword of libpq."""

_numbers = itertools.count()


class PostgresServer:
    """A server of its own in a temporary folder.

    Attributes:
        port: Where it listens on 127.0.0.1.
    """

    def __init__(self, programs: Path) -> None:
        """Make the server's files; `start` starts it."""
        self.port = free_port()
        self._programs = programs
        self._folder = Path(tempfile.mkdtemp(prefix="postgres-"))
        # PostgreSQL refuses to run as root.
        self._user = _other_user() if os.geteuid() == 0 else None
        password = self._folder / "password"
        password.write_text(PASSWORD)
        if self._user is not None:
            for path in (self._folder, password):
                shutil.chown(path, self._user)
        self._run(
            "initdb", "-D", self._data, "-U", USER, "-A", "scram-sha-256", "--no-sync",
            "-E", "UTF8", "--locale", "C", f"--pwfile={password}",
        )  # fmt: skip
        self.start()

    @property
    def _data(self) -> str:
        return str(self._folder / "data")

    def start(self) -> None:
        """Start it; returns when it answers."""
        options = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 -k {self._folder} "
            "-c fsync=off -c max_connections=200"
        )
        log = str(self._folder / "log")
        self._run("pg_ctl", "-D", self._data, "-o", options, "-l", log, "-w", "-t", "300", "start")

    def kill(self) -> None:
        """End every process of it at once with SIGKILL, as a crash would."""
        pid = int((self._folder / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGSTOP)  # or it makes another one meanwhile
        wait_until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] == "T")
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for process in (pid, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        wait_until(lambda: not any(Path(f"/proc/{each}").exists() for each in (pid, *children)))

    def stop(self) -> None:
        """Stop it and remove its files."""
        with contextlib.suppress(AssertionError):  # killed before
            self._run("pg_ctl", "-D", self._data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(self._folder, ignore_errors=True)

    def url(self, database: str) -> str:
        """The URL of a database, password included."""
        return (
            f"postgresql://{quote(USER)}:{quote(PASSWORD, safe='')}"
            f"@127.0.0.1:{self.port}/{database}"
        )

    def new_database(self, template: str = "template1") -> str:
        """Make a database that nobody else uses; its name."""
        name = f"test_{next(_numbers)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return name

    def new(self, template: str = "template1") -> Postgres:
        """A database that nobody else uses."""
        return Postgres.parse(self.url(self.new_database(template)))

    def _run(self, program: str, *arguments: str) -> None:
        with (self._folder / f"{program}.out").open("wb") as output:  # a pipe stays open with it
            done = subprocess.run(
                [self._programs / program, *arguments],
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                cwd=self._folder,
                user=self._user,
                group=None if self._user is None else pwd.getpwnam(self._user).pw_gid,
                extra_groups=None if self._user is None else [],
                check=False,
            )
        text = (self._folder / f"{program}.out").read_text(errors="replace")
        assert done.returncode == 0, f"{program}: {text[-2000:]}"


def missing_postgres() -> str:
    """Why PostgreSQL cannot be started here; empty if it can."""
    return "" if _programs() else "PostgreSQL is not installed (Debian package postgresql)"


@cache
def postgres() -> PostgresServer:
    """A server, 2 s, stopped when the process ends. Skips where there is none."""
    programs = _programs()
    if programs is None:
        pytest.skip(missing_postgres())
    server = PostgresServer(programs)
    atexit.register(server.stop)
    return server


@contextlib.contextmanager
def own_postgres() -> Iterator[PostgresServer]:
    """A server of the test's own, to be killed."""
    programs = _programs()
    if programs is None:
        pytest.skip(missing_postgres())
    server = PostgresServer(programs)
    try:
        yield server
    finally:
        server.stop()


def _programs() -> Path | None:
    """Folder of initdb and pg_ctl: the newest of Debian's, which are not on PATH, or PATH's."""
    debian = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3])
    )
    initdb = str(debian[-1]) if debian else shutil.which("initdb")
    return Path(initdb).parent if initdb else None


def _other_user() -> str:
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"
