"""Resources that a job asks of the machines it runs on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from catalog.errors import InvalidInput

if TYPE_CHECKING:  # what lists jobs does without
    from pipeline.runs.job_order import JobOrder


@dataclass(frozen=True)
class Resources:
    """Resources that a job asks of the machines it runs on."""

    ranks: int = 1
    """Processes that a training or validation has at once."""
    ranks_per_node: int | None = None
    """Of these on each machine; as the backend places them when None."""
    gpus: int = 0
    """For each process."""
    cores: int | None = None
    """For each process; as the backend has it when None."""
    memory_mb: int | None = None
    """On each machine [MB]; as the backend has it when None."""
    wall_minutes: int | None = None
    """After which the job's turn ends; None for as long as the backend lets it."""
    nodes: str = ""
    """Names of machines, as the backend writes them; empty for any."""
    constraint: str = ""
    """Labels that its machines have, as the backend writes them; empty for none."""
    image: str = ""
    """Container image that its programs run in; empty for none."""
    mounts: Mapping[str, str] = field(default_factory=dict)
    """Folders here, and where they lie inside the job."""
    environment: tuple[str, ...] = ()
    """Names of variables that the job cannot do without."""
    packages: tuple[str, ...] = ()
    """Python packages that its programs import."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The backend's own settings, such as {"partition": "gpu"}, before those of its file."""

    def __post_init__(self) -> None:
        """Accept numbers that mean something.

        Raises:
            InvalidInput: One is too low.
        """
        for name in ("ranks", "ranks_per_node", "cores", "memory_mb", "wall_minutes"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise InvalidInput(f"{name.replace('_', ' ')} {number}: expected at least 1")
        if self.gpus < 0:
            raise InvalidInput(f"gpus {self.gpus}: expected 0 or more")

    @property
    def cores_of_rank(self) -> int:
        """Cores of each process on a cluster of batch jobs."""
        return self.cores or 1

    def ranks_on_node(self, ranks: int) -> int:
        """Processes on each machine of a cluster, of as many in all; the last may have fewer."""
        return min(self.ranks_per_node or ranks, ranks)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Resources":
        """The resources whose fields `dataclasses.asdict` gave."""
        lists = {name: tuple(data.get(name, ())) for name in ("environment", "packages")}
        return cls(**{**data, **lists})

    def need_only(self, backend: str, *names: str) -> None:
        """Go on where no more was asked for than a backend knows.

        Args:
            backend: Its name.
            names: Fields of these resources that it knows.

        Raises:
            InvalidInput: Something else was asked for.
        """
        usual = Resources()
        for name in self.__dataclass_fields__:
            if name not in names and getattr(self, name) != getattr(usual, name):
                label = name.replace("_", " ")
                raise InvalidInput(
                    f"{label} {_shown(getattr(self, name))}: backend {backend} has no such "
                    "setting; leave it out, or choose another backend"
                )


def asked_resources(order: "JobOrder", packages: Sequence[str] = ()) -> Resources:
    """The resources that an order asks for, for programs that import these packages."""
    requested = Resources.from_json(order.resources or {})
    return replace(requested, ranks=order.processes, packages=tuple(packages))


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{key}={of_key}" for key, of_key in value.items())
    return str(value)
