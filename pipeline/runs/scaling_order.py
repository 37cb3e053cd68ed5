"""The order for a scaling study: the same training on 1, 2, 4... ranks, several times each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from catalog.errors import InvalidInput
from pipeline.runs.job_order import MOST_RANKS
from pipeline.runs.orders import PREPARE, STAGE, FramesOrder, Training, TrainingSettings
from pipeline.runs.setting import Setting, rows

_MOST_COUNTS, _MOST_REPEATS = 16, 100


def ranks_in(text: str) -> tuple[int, ...]:
    """The numbers of ranks that a text such as 1,2,4 says.

    Raises:
        InvalidInput: One is no number.
    """
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdigit() for word in words):
        raise InvalidInput(f"--ranks {text}: expected whole numbers, such as 1,2,4")
    return tuple(map(int, words))


@dataclass(frozen=True, kw_only=True)
class Scaling(TrainingSettings, FramesOrder):
    """A training that is to be run on several numbers of ranks, several times each."""

    kind: ClassVar[str] = "scaling"
    drives: ClassVar[bool] = True

    ranks: Annotated[
        Sequence[int],
        Setting(
            help="Numbers of ranks (1,2), each of which trains as often as --repeats says.",
            body="Numbers of ranks; each trains as often as repeats says.",
            max_length=_MOST_COUNTS,
            examples=([1, 2, 4, 8, 16],),
            metavar="N,N,...",
            parse=ranks_in,
            after="",
        ),
    ] = (1, 2)
    repeats: Annotated[
        int,
        Setting(
            help="Trainings of each number of ranks; the seed is one more in each.",
            ge=1,
            le=_MOST_REPEATS,
            after="",
        ),
    ] = 5
    prepare: Annotated[bool | None, PREPARE] = None
    stage: Annotated[bool, STAGE] = True

    def check(self) -> None:
        """As of every order; each training's settings go together."""
        super().check()
        counts = [*self.ranks]
        if not 1 <= len(counts) <= _MOST_COUNTS:
            raise InvalidInput(f"ranks {counts}: expected 1 to {_MOST_COUNTS} numbers")
        for count in counts:
            if not isinstance(count, int) or not 1 <= count <= MOST_RANKS:
                raise InvalidInput(f"ranks {count}: expected 1 to {MOST_RANKS}")
        if len({*counts}) < len(counts):
            raise InvalidInput(f"ranks {','.join(map(str, counts))}: name each number once")
        for count in counts:
            self.training(count, 1).check()

    def training(self, ranks: int, repeat: int, name: str | None = None) -> Training:
        """One of its trainings.

        Args:
            ranks: Its workers.
            repeat: From 1.
            name: The job's; made up when None.
        """
        settings: dict[str, Any] = {
            row.name: getattr(self, row.name) for row in rows(TrainingSettings)
        }
        return Training(
            **{**settings, "seed": self.seed + repeat - 1},
            dataset=self.dataset,
            question=self.question,
            divide=self.divide,
            save_as=self.save_as,
            workers=ranks,
            prepare=self.prepare,
            stage=self.stage,
            name=name,
            backend=self.backend,
            resources=self.resources,
            attempts=self.attempts,
        )
