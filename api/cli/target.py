"""The target of a command: the services of a home, or a server's client of the same shape."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, SupportsBytes

from api.cli import destination

if TYPE_CHECKING:
    from api.cli.shapes.accounts import Audit, Collections, Tokens, Users
    from api.cli.shapes.automation import Triggers, Webhooks
    from api.cli.shapes.cache import Cache
    from api.cli.shapes.datasets import Datasets
    from api.cli.shapes.jobs import Jobs, Models
    from api.cli.shapes.policies import Policies
    from api.cli.shapes.record import Record
    from api.cli.shapes.selections import Selections
    from api.cli.shapes.sources import Sources
    from api.cli.shapes.stagings import Stagings
    from api.cli.shapes.statements import Statements
    from api.cli.shapes.statistics import Statistics
    from api.cli.shapes.tags import Tags
    from api.services.session import Session


class Target(Protocol):
    """A home's services, or a server's client."""

    def info(self) -> "Record":
        """Where things are and how much there is."""

    def frame(self, fkey: str, *, at: int | None = None) -> Mapping[str, Any]:
        """A frame: its file's columns, and its tags."""

    def prediction(
        self,
        fkey: str,
        *,
        model: str | None = None,
        errors: bool = False,
        classes: Sequence[str] | None = None,
        format: Literal["png", "jpeg", "webp"] = "png",  # noqa: A002
    ) -> SupportsBytes:
        """A model's prediction over a frame's camera image, encoded."""

    @property
    def cache(self) -> "Cache":
        """The cache near the jobs."""

    @property
    def jobs(self) -> "Jobs":
        """Training, validation and other long work."""

    @property
    def models(self) -> "Models":
        """Models that training jobs made."""

    @property
    def policies(self) -> "Policies":
        """Tags that are set on what a condition finds."""

    @property
    def sources(self) -> "Sources":
        """Sources."""

    @property
    def datasets(self) -> "Datasets":
        """Datasets."""

    @property
    def selections(self) -> "Selections":
        """Questions and their answers."""

    @property
    def stagings(self) -> "Stagings":
        """Datasets' files brought near the jobs."""

    @property
    def statements(self) -> "Statements":
        """Statements in SQL."""

    @property
    def statistics(self) -> "Statistics":
        """Statistics of frames."""

    @property
    def tags(self) -> "Tags":
        """Tags and tag families."""

    @property
    def triggers(self) -> "Triggers":
        """The rules that begin jobs by themselves."""

    @property
    def webhooks(self) -> "Webhooks":
        """Addresses that are told of jobs' ends."""

    @property
    def users(self) -> "Users":
        """Users."""

    @property
    def tokens(self) -> "Tokens":
        """Tokens."""

    @property
    def collections(self) -> "Collections":
        """Collections."""

    @property
    def audit(self) -> "Audit":
        """The audit log."""


def target(*, makes: bool = False) -> Target:
    """The target that the command's options and the environment name: see api.cli.destination.

    Args:
        makes: Make a home's stores where there are none: see api.cli.destination.home.

    Raises:
        NotMade: It is a home that is not there.
    """
    return home_session(makes=makes) if destination.server() is None else destination.client()


def home_session(*, makes: bool = False) -> "Session":
    """The services of the home that the environment names.

    Args:
        makes: Make its stores where there are none: see api.cli.destination.home.

    Raises:
        InvalidInput: A server was chosen, and this command cannot ask one.
    """
    from api.services.session import Session  # imports the home's stores as they are used

    return Session(destination.home(makes=makes), is_command=True)
