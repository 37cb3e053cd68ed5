"""The target of a command: the services of a home, or a server's client of the same shape."""

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from api.cli import destination

if TYPE_CHECKING:
    import framesift
    from api.services.cache import Cache as HomeCache
    from api.services.jobs.service import Jobs as HomeJobs
    from api.services.selections import Answer as HomeAnswer
    from api.services.session import Session
    from framesift.cache import Cache as ServerCache
    from framesift.jobs import Jobs as ServerJobs
    from framesift.selection import Selection

Target: TypeAlias = "Session | framesift.Client"
"""The services of a home, or a server's client: mypy checks each call of a command against both."""
Answer: TypeAlias = "HomeAnswer | Selection"
Cache: TypeAlias = "HomeCache | ServerCache"
Jobs: TypeAlias = "HomeJobs | ServerJobs"


class Record(Protocol):
    """The JSON of a noun: a schema of a home's service, or a server's answer."""

    def __getitem__(self, name: str, /) -> Any: ...

    def get(self, name: str, /) -> Any:
        """The value of a field; None where there is none."""


def target(*, makes: bool = False) -> "Target":
    """The target that the command's options and the environment name: see api.cli.destination.

    Args:
        makes: Make a home's stores where there are none: see api.cli.destination.home.
    """
    return home_session(makes=makes) if destination.server() is None else destination.client()


def home_session(*, makes: bool = False) -> "Session":
    """The services of the home that the environment names.

    Args:
        makes: Make its stores where there are none: see api.cli.destination.home.
    """
    from api.services.session import Session  # imports the home's stores as they are used

    return Session(destination.home(makes=makes), is_command=True)
