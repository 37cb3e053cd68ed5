"""The suite's own parts measure and limit what they say."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.api.servers import wait_until
from tests.attacks.arena import ACCOUNTS, Server, arena
from tests.attacks.conftest import Watched
from tests.attacks.memory_limit import memory_limited
from tests.pipeline.homes import FRAMES

SQL = "/db2whrest/v1/sql_query"
COUNT = "select count(*) from t_car"
OF_ALL = ("dataadmin", "admin")


def test_accounts_see_their_rows(attacked: Server, watched: Watched) -> None:
    """Each token is let in, sees the rows of its role, and the server takes little for it."""
    assert attacked.limit
    with watched(attacked, most_mb=1_000) as watch:
        for name in ACCOUNTS:
            with attacked.client(name) as client:
                # Statements of earlier attacks may still run: what takes long is scheduled.
                answers = (client.post(SQL, content=COUNT) for _ in range(30))
                rows = next(answer.text for answer in answers if answer.status_code == 200)
            assert rows == (f"0,{FRAMES}\n" if name in OF_ALL else "0,3\n"), name
    assert watch.peak_mb > 50
    assert watch.longest_healthz_s > 0


def test_a_server_that_stands_still_is_noticed(home: Path, watched: Watched) -> None:
    """A second in which it answers nobody is in the figures; so is a server that has died."""
    with arena(home) as server:
        with watched(server) as watch:
            server.process.send_signal(signal.SIGSTOP)
            time.sleep(1)
            server.process.send_signal(signal.SIGCONT)
        assert watch.longest_healthz_s > 0.5
        with pytest.raises(AssertionError, match="died"), watched(server):
            _kill(server)


def _kill(server: Server) -> None:
    server.process.kill()
    wait_until(lambda: server.process.poll() is not None)


def test_the_limit_of_memory_holds() -> None:
    """A process gets no 300 MB where 100 are allowed, and 50 it does."""
    program = "import sys; sys.stdin.readline(); bytearray(50 << 20); print(1, flush=True)\n"
    program += "bytearray(300 << 20); print(2, flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=-1, stdout=-1, stderr=-3, text=True
    ) as process:
        with memory_limited([process.pid], 100) as limit:
            assert re.match("100 MB by (memory|RLIMIT)", limit)
            out, _ = process.communicate("\n", timeout=120)
        assert out == "1\n"
        assert process.returncode != 0
