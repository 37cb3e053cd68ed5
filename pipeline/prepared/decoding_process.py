"""A pipeline.prepared.worker, from the side of the process that started it."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, cast

from catalog.errors import StorageError
from framesift_start import start
from pipeline.manifest import Manifest
from pipeline.prepared.size import Size
from pipeline.prepared.worker import BadFrames


class DecodingProcess:
    """A process for one block of rows at a time; it ends with the `with` block."""

    def __init__(self, manifest: Manifest, folder: Path, size: Size) -> None:
        """Start one for a manifest that was read from disk, into the arrays below ``folder``."""
        command = [sys.executable, *start("pipeline.prepared.worker")]
        self._process = subprocess.Popen(
            [*command, str(manifest.folder), str(folder), str(size)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._input = cast("IO[str]", self._process.stdin)
        self._output = cast("IO[str]", self._process.stdout)

    def __enter__(self) -> "DecodingProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def decode(self, rows: Sequence[int]) -> BadFrames:
        """Have rows decoded; those that cannot be.

        Raises:
            StorageError: The process cannot go on, or has ended.
        """
        try:
            self._input.write(" ".join(map(str, rows)) + "\n")
            self._input.flush()
            line = self._output.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise StorageError(
                f"a process that decodes frames ended with status {self._process.wait()}: is there "
                "enough memory? Prepare with fewer --workers"
            )
        answer = json.loads(line)
        if "error" in answer:
            raise StorageError(answer["error"])
        return {int(row): (file, reason) for row, (file, reason) in answer["bad"].items()}
