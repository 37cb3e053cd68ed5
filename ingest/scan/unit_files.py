"""A scan counted by a job array, without any engine: units as files in a shared folder.

    framesift ingest SOURCE --write-units FOLDER     lists, writes unit-000001.z, unit-000002.z...
    python -m ingest.scan.unit_files FOLDER INDEX         counts one: an element of the array
    framesift ingest SOURCE --collect-units FOLDER   commits what they counted

An element may run as often as it likes: it changes nothing but its own counts file.
"""

import json
import sys
import zlib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from catalog.errors import AlreadyExists, CatalogDamaged, FramesiftError, InvalidInput
from catalog.storage.atomic_write import atomic_path, atomic_write
from catalog.values import Problem
from ingest.scan.count_unit import count_unit, read_counts
from ingest.scan.engine import Counted, CountTask
from ingest.scan.frame_json import file_from_json, file_json, frame_from_json, frame_json
from ingest.scan.portions import Portion
from ingest.scan.scan_counts import ScanCounts

HEADER = "units.json"
FORMAT = 5


class UnitFolder:
    """A folder of units: what a scan is to do, and what its elements counted."""

    def __init__(self, folder: Path) -> None:
        """Name a folder; nothing is read yet."""
        self.folder = folder

    def write(
        self,
        task: CountTask,
        portions: Iterator[Portion],
        counts: ScanCounts,
        header: dict[str, Any],
    ) -> int:
        """Write the units of a scan; how many.

        Written beside the folder and renamed: a folder that is there is whole.

        Args:
            header: What else ``header`` is to give back.

        Raises:
            AlreadyExists: The folder is there.
        """
        if self.folder.exists():
            raise AlreadyExists("folder", str(self.folder), "remove it, or name another")
        with atomic_path(self.folder, is_folder=True, parents=True) as temporary_folder:
            number = 0
            # Job arrays of LSF begin with 1, and those of Slurm may.
            for number, portion in enumerate(portions, start=1):
                (temporary_folder / _name("portion", number)).write_bytes(
                    _packed(_portion_json(portion))
                )
                (temporary_folder / _name("unit", number)).write_bytes(task.unit(portion))
            header = {"format": FORMAT, "units": number, "counts": counts.to_json(), **header}
            (temporary_folder / HEADER).write_text(json.dumps(header, indent=2))
        return number

    def header(self) -> dict[str, Any]:
        """The header that was written about the scan.

        Raises:
            InvalidInput: The folder holds no units, or those of another version.
        """
        try:
            header: dict[str, Any] = json.loads((self.folder / HEADER).read_text())
        except (OSError, ValueError) as error:
            raise InvalidInput(
                f"{self.folder}: holds no units; write them with framesift ingest SOURCE "
                "--write-units"
            ) from error
        if header.get("format") != FORMAT:
            raise InvalidInput(
                f"{self.folder}: units of format {header.get('format')}, expected {FORMAT}; "
                "write them again"
            )
        return header

    def count(self, number: int) -> int:
        """Count unit ``number`` and keep its counts; how many frames it has.

        Raises:
            InvalidInput: There is no such unit.
        """
        unit = self.folder / _name("unit", number)
        try:
            content = unit.read_bytes()
        except OSError as error:
            raise InvalidInput(
                f"{unit}: {error.strerror}; units are 1 to {self.header()['units']}"
            ) from error
        counts = count_unit(content)
        atomic_write(self.folder / _name("counts", number), counts)
        return len(read_counts(counts))

    def missing(self) -> list[int]:
        """Numbers of the units that have no counts yet."""
        units = range(1, self.header()["units"] + 1)
        return [n for n in units if not (self.folder / _name("counts", n)).exists()]

    def results(self, counts: ScanCounts) -> Iterator[Counted]:
        """Every portion with its counts, in order; what was listed is added to ``counts``."""
        header = self.header()
        for name in ("files", "added", "changed", "unchanged", "removed", "bad_files", "orphans"):
            setattr(counts, name, header["counts"][name])
        for number in range(1, header["units"] + 1):
            portion = _portion_from_json(_unpacked(self.folder / _name("portion", number)))
            yield portion, read_counts((self.folder / _name("counts", number)).read_bytes())


def _name(kind: str, number: int) -> str:
    return f"{kind}-{number:06}.z"


def _packed(content: dict[str, Any]) -> bytes:
    return zlib.compress(json.dumps(content, separators=(",", ":")).encode(), level=1)


def _unpacked(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(zlib.decompress(path.read_bytes()))
    except (OSError, ValueError, zlib.error) as error:
        raise CatalogDamaged(f"{path}: is damaged: {error}; write the units again") from error
    return content


def _portion_json(portion: Portion) -> dict[str, Any]:
    return {
        "frames": [frame_json(frame) for frame in portion.frames],
        "unlabelled": [frame_json(frame) for frame in portion.unlabelled],
        "files": [file_json(file) for file in portion.files],
        "restated": [file_json(file) for file in portion.restated],
        "examined": portion.examined,
        "problems": [asdict(problem) for problem in portion.problems],
        "gone": portion.removed,
        "touched": sorted(portion.touched),
    }


def _portion_from_json(content: dict[str, Any]) -> Portion:
    return Portion(
        frames=[frame_from_json(frame) for frame in content["frames"]],
        unlabelled=[frame_from_json(frame) for frame in content["unlabelled"]],
        files=[file_from_json(file) for file in content["files"]],
        restated=[file_from_json(file) for file in content["restated"]],
        examined=content["examined"],
        problems=[Problem(**problem) for problem in content["problems"]],
        removed=content["gone"],
        touched={(scene, camera, number) for scene, camera, number in content["touched"]},
    )


def main(folder: str, index: str) -> int:
    """Count one unit; the process's exit status."""
    try:
        frames = UnitFolder(Path(folder)).count(int(index))
    except (FramesiftError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 1
    print(f"unit {index}: {frames} frames counted")  # noqa: T201
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m ingest.scan.unit_files FOLDER INDEX")
    sys.exit(main(*sys.argv[1:]))
