"""A process that decodes frames into a form's arrays.

    python -m pipeline.prepared.worker MANIFEST FOLDER WIDTHxHEIGHT

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
from pipeline.prepared.arrays import Arrays
from pipeline.prepared.decoded_frames import DecodedFrames, nearest, small_image
from pipeline.runs.size import Size

BadFrames = dict[int, tuple[str, str]]
"""The file that cannot be decoded, and why, by rows of the manifest."""


class Decoder:
    """Decodes frames of a manifest into a form's arrays."""

    def __init__(self, manifest: Manifest, arrays: Arrays, size: Size) -> None:
        self._manifest, self._arrays, self._size = manifest, arrays, size
        self._class_list = manifest.header.class_list

    def decode(self, rows: Sequence[int]) -> BadFrames:
        """Decode rows of the manifest; those that cannot be."""
        some = replace(self._manifest, frames=self._manifest.frames.take(list(rows)))
        frames = DecodedFrames(some, self._class_list)
        bad: BadFrames = {}
        for row, position in enumerate(rows):
            try:
                image = frames.image(row)
                size_px = (image.shape[0], image.shape[1])
                label = None
                if frames.has_label(row):
                    label = nearest(frames.label(row, size_px), self._size)
            except BadFile as error:
                bad[position] = (error.file, error.reason)
            else:
                self._arrays.put(position, small_image(image, self._size), label, size_px)
        return bad


def main(arguments: Sequence[str]) -> int:
    """Answer until the input ends; the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the parent, and that ends this
    manifest, arrays = Manifest.read(Path(arguments[0])), Arrays.open(Path(arguments[1]))
    decoder = Decoder(manifest, arrays, Size.parse(arguments[2]))
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
