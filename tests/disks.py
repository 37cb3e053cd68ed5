"""Real disks of a test's own: small ones, and one whose power can be cut. As root only."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def mount(folder: Path, *options: str) -> None:
    """Mount something at a folder that is made; skips the test where that cannot be done."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", *options, str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no command mount here")
    if done.returncode:
        pytest.skip(f"nothing can be mounted here (only root can): {done.stderr.strip()}")


def unmount(folder: Path) -> None:
    """Take away what was mounted, also while something holds files of it open."""
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def small_disk(folder: Path, *options: str) -> Iterator[Path]:
    """A file system in memory, such as of "size=3m" or "nr_inodes=20"."""
    mount(folder, "-t", "tmpfs", "-o", ",".join(options), "tmpfs")
    try:
        yield folder
    finally:
        unmount(folder)


class Disk:
    """An ext4 file system in an image file.

    Attributes:
        folder: Where it is mounted.
    """

    def __init__(self, below: Path) -> None:
        self._image, self._below, self._cuts = below / "disk.ext4", below, 0
        self.folder = below / "disk"

    def format(self) -> None:
        """Make it and mount it; it writes down what nobody asks it to after five minutes only."""
        if shutil.which("mkfs.ext4") is None:
            pytest.skip("there is no command mkfs.ext4 here (Debian's package e2fsprogs)")
        self._below.mkdir(exist_ok=True)
        with self._image.open("wb") as image:
            image.truncate(96 << 20)
        subprocess.run(["mkfs.ext4", "-q", str(self._image)], check=True)
        mount(self.folder, "-o", "loop,commit=300", str(self._image))

    @contextmanager
    def power_cut(self) -> Iterator[Path]:
        """The disk as it is found after a power cut now: what was not written to it is gone."""
        self._cuts += 1
        image, mounted = (self._below / f"cut{self._cuts}{end}" for end in (".ext4", ""))
        subprocess.run(["cp", "--sparse=always", str(self._image), str(image)], check=True)
        mount(mounted, "-o", "loop", str(image))
        try:
            yield mounted
        finally:
            unmount(mounted)
            image.unlink()


@contextmanager
def disk(below: Path) -> Iterator[Disk]:
    """A disk whose power can be cut, gone afterwards."""
    fresh = Disk(below)
    fresh.format()
    try:
        yield fresh
    finally:
        unmount(fresh.folder)
