"""The order for a preflight: what ranks are to find of their machines before a training."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from catalog.errors import InvalidInput
from pipeline.runs.job_order import (
    ATTEMPTS_ROW,
    RANKS_ROW,
    JobOrder,
    absolute_path,
    check_absolute,
)
from pipeline.runs.setting import Setting

HOROVOD, TORCH = "horovod", "torch"

LARGEST_MIB, BATCH_SIZE, STEPS = 64, 64, 100
"""What is measured where an order leaves it open."""


@dataclass(frozen=True, kw_only=True)
class Preflight(JobOrder):
    """Ranks that are to measure their exchange, disks, clocks and versions."""

    kind: ClassVar[str] = "preflight"

    ranks: Annotated[int, RANKS_ROW] = 2
    through: Annotated[
        str,
        Setting(
            help="What joins the ranks: horovod, as trainings have it, or torch.distributed.",
            metavar="horovod|torch",
        ),
    ] = HOROVOD
    largest_mib: Annotated[
        int,
        Setting(help="Largest message of the allreduce [MiB].", ge=1, le=4096, examples=(256,)),
    ] = LARGEST_MIB
    dataset: Annotated[
        str | None,
        Setting(
            help="Read its files, too: from the cache where it is staged, and where its sources "
            "are mounted. NAME, or NAME@VERSION.",
            examples=("streets@1",),
            metavar="DATASET",
        ),
    ] = None
    path: Annotated[
        str | None,
        Setting(
            help="Read files below this folder, too, as the ranks' machines have it.",
            body="Read files below this folder, too, as the ranks' machines have it; of those that "
            "the caller may name as sources.",
            max_length=4096,
            examples=("/gpfs/adas",),
            metavar="FOLDER",
            parse=absolute_path,
        ),
    ] = None
    synthetic: Annotated[
        bool,
        Setting(
            help="Train ResNet-50 on generated data, too: images a second.", option="--synthetic"
        ),
    ] = False
    batch_size: Annotated[
        int | None,
        Setting(help=f"With --synthetic: images for each rank and step ({BATCH_SIZE}).",
                body=f"With synthetic: images for each rank and step; {BATCH_SIZE} by default.",
                ge=1, usual=BATCH_SIZE),
    ] = None  # fmt: skip
    steps: Annotated[
        int | None,
        Setting(help=f"With --synthetic: steps that are timed ({STEPS}).",
                body=f"With synthetic: steps that are timed; {STEPS} by default.", ge=1,
                usual=STEPS),
    ] = None  # fmt: skip
    attempts: Annotated[int, ATTEMPTS_ROW] = 1

    @property
    def processes(self) -> int:
        """Its ranks."""
        return self.ranks

    def check(self) -> None:
        """As of every order; settings go together."""
        super().check()
        if self.through not in (HOROVOD, TORCH):
            raise InvalidInput(f"through {self.through}: expected {HOROVOD} or {TORCH}")
        check_absolute("path", self.path)
        for name in ("batch_size", "steps"):
            if getattr(self, name) is not None and not self.synthetic:
                label = name.replace("_", " ")
                raise InvalidInput(
                    f"{label} {getattr(self, name)}: goes with synthetic; give that, too, or leave "
                    "it out"
                )
        if self.synthetic and self.through == TORCH:
            raise InvalidInput(
                f"synthetic: ResNet-50 is trained through {HOROVOD}; leave out through {TORCH}"
            )
