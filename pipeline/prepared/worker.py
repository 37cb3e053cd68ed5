"""A process that decodes frames into a form.

    python -m pipeline.prepared.worker MANIFEST FOLDER WIDTHxHEIGHT|full

Each line of its input names rows; it answers each with a line of JSON: what could not be decoded,
or why it cannot go on. It ends with its input, so a parent that is killed leaves none behind.
"""

import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from catalog.errors import BadFile, FramesiftError
from pipeline.manifest import Manifest
from pipeline.prepared.decoded_frames import DecodedFrames
from pipeline.prepared.full_form import open_full_form
from pipeline.prepared.kinds import FormFiles, opened_files
from pipeline.runs.size import FULL, FormSize, form_size

BadFrames = dict[int, tuple[str, str]]
"""The file that cannot be decoded, and why, by rows of the manifest."""


class Decoder:
    """Decodes frames of a manifest into the files of a form; from one at full size, if there is."""

    def __init__(self, manifest: Manifest, files: FormFiles, size: FormSize) -> None:
        self._manifest, self._files = manifest, files
        self._full = None if size == FULL else open_full_form(manifest)

    def decode(self, rows: Sequence[int]) -> BadFrames:
        """Decode rows of the manifest; those that cannot be."""
        some = replace(self._manifest, frames=self._manifest.frames.take(list(rows)))
        fkeys = some.frames["fkey"].to_pylist()
        full = None if self._full is None else self._full.rows(fkeys)
        frames = DecodedFrames(some, self._files.classes, stored=full)
        bad: BadFrames = {}
        for row, position in enumerate(rows):
            try:
                image = frames.image(row)
                size_px = (image.shape[0], image.shape[1])
                label = frames.label(row, size_px) if frames.has_label(row) else None
            except BadFile as error:
                bad[position] = (error.file, error.reason)
            else:
                self._files.put(position, image, label)
        return bad


def main(arguments: Sequence[str]) -> int:
    """Answer until the input ends; the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the parent, and that ends this
    manifest, size = Manifest.read(Path(arguments[0])), form_size(arguments[2])
    decoder = Decoder(manifest, opened_files(Path(arguments[1]), manifest, size), size)
    for line in sys.stdin:
        answer: dict[str, object]
        try:
            answer = {"bad": decoder.decode([int(number) for number in line.split()])}
        except (FramesiftError, OSError, MemoryError) as error:
            answer = {"error": str(error) or type(error).__name__}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
