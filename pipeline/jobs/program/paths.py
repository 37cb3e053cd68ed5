"""Names of what a user's program is handed, inside its job's folder.

input/files.txt, input/files-SPLIT.txt   a line for each frame: image, tab, label
input/classes.json                       pipeline.prepared.class_file
input/manifest/                          the dataset, with the places of its files
input/prepared/                          its frames decoded, at one size
input/rendezvous.json                    the port at which rank 0 may wait for the others
output/                                  of the program; what lies there is collected
"""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ProgramPaths:
    """Paths in the folder of a job of kind "run"."""

    folder: Path

    @property
    def input(self) -> Path:
        """Folder of what the program is handed."""
        return self.folder / "input"

    @property
    def output(self) -> Path:
        """Folder that the program writes into."""
        return self.folder / "output"

    @property
    def classes(self) -> Path:
        """Classes and colours."""
        return self.input / "classes.json"

    @property
    def manifest(self) -> Path:
        """Folder of the manifest."""
        return self.input / "manifest"

    @property
    def prepared(self) -> Path:
        """Folder of the prepared arrays."""
        return self.input / "prepared"

    @property
    def rendezvous(self) -> Path:
        """Where ranks find each other."""
        return self.input / "rendezvous.json"

    def files(self, split: str | None) -> Path:
        """List of files of a split; of the job's frames for None."""
        return self.input / ("files.txt" if split is None else f"files-{split}.txt")
