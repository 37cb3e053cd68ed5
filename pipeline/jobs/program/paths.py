"""Names of what a user's program is handed, inside its job's folder.

input/files.txt, input/files-SPLIT.txt   a line for each frame: image, tab, label
input/classes.json                       pipeline.prepared.class_file
input/manifest/                          the dataset, with the places of its files
input/prepared/                          its frames decoded, at one size
input/staging.json, input/manifest/staging.json   where the staging is that still brings files
input/rendezvous.json                    the port at which rank 0 may wait for the others
input/checkpoint.json                    pipeline.jobs.program.checkpoints
output/                                  of the program; what lies there is collected
scalars.json                             pipeline.jobs.program.scalars
checkpoints/                             a checkpoint of another job, that this one began with
"""

from dataclasses import dataclass
from pathlib import Path

from pipeline.runs.onnx_file import ENDING

USUAL_ONNX = f"model{ENDING}"
"""The ONNX file that a job is taken for, where its program wrote several."""


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
    def onnx_files(self) -> list[str]:
        """Names of the ONNX files that the program wrote, by name."""
        return sorted(path.name for path in self.output.glob(f"*{ENDING}"))

    @property
    def onnx_file(self) -> str | None:
        """The one that the job's name stands for: model.onnx, or the only one; None of others."""
        written = self.onnx_files
        if USUAL_ONNX in written:
            return USUAL_ONNX
        return written[0] if len(written) == 1 else None

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

    @property
    def checkpoint(self) -> Path:
        """What this attempt goes on from."""
        return self.input / "checkpoint.json"

    @property
    def scalars(self) -> Path:
        """What was read of the numbers that the program logs."""
        return self.folder / "scalars.json"

    @property
    def first_checkpoint(self) -> Path:
        """Folder of a checkpoint of another job."""
        return self.folder / "checkpoints"

    def files(self, split: str | None) -> Path:
        """List of files of a split; of the job's frames for None."""
        return self.input / ("files.txt" if split is None else f"files-{split}.txt")
