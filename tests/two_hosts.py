"""Two machines behind ssh for tests: network namespaces of this one, with an sshd each."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "two_hosts.sh"


@dataclass(frozen=True)
class Machines:
    """Two of them: prefix1 and prefix2."""

    prefix: str
    folder: Path

    @property
    def names(self) -> tuple[str, str]:
        """As ssh knows them."""
        return f"{self.prefix}1", f"{self.prefix}2"

    @property
    def settings(self) -> str:
        """What backends.toml says of them: two slots each."""
        first, second = self.names
        # 3 s are too few: a machine that is busy with other suites has been silent that long.
        return (
            f'[hosts]\nhosts = ["{first}:2", "{second}:2"]\nsilence_seconds = 15\n'
            f'ssh_config = "{self.folder}/ssh_config"\n'
        )

    def lose(self, name: str) -> None:
        """Kill what runs on one, but for its sshd, which takes new connections."""
        listening = int((self.folder / f"sshd{name[-1]}.pid").read_text())
        pids = subprocess.run(
            ["ip", "netns", "pids", name], capture_output=True, text=True, check=True
        ).stdout.split()
        for pid in {int(pid) for pid in pids} - {listening}:
            os.kill(pid, signal.SIGKILL)


@contextmanager
def two_hosts(folder: Path) -> Iterator[Machines]:
    """Two machines for the block; their keys lie in the folder, which must not be there yet."""
    if os.getuid() != 0 or not all(map(shutil.which, ("ip", "sshd", "ssh", "unshare"))):
        pytest.skip("needs root, iproute2, openssh-server and openssh-client")
    prefix = f"h{os.getpid() % 1000}"
    try:
        up = subprocess.run(
            [SCRIPT, "up", folder, prefix], capture_output=True, text=True, check=False
        )
        if up.returncode != 0 and "Operation not permitted" in up.stderr:
            pytest.skip(f"no network namespaces here: {up.stderr}")
        assert up.returncode == 0, up.stderr
        yield Machines(prefix, folder)
    finally:
        subprocess.run([SCRIPT, "down", folder, prefix], check=True)
