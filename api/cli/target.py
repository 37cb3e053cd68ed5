"""The target of a command: the services of a home, or a server's client of the same shape."""

from typing import TYPE_CHECKING, Protocol

from api.cli import chosen

if TYPE_CHECKING:
    from api.cli.shapes.accounts import Audit, Collections, Tokens, Users
    from api.cli.shapes.datasets import Datasets
    from api.cli.shapes.jobs import Jobs
    from api.cli.shapes.policies import Policies
    from api.cli.shapes.record import Record
    from api.cli.shapes.selections import Selections
    from api.cli.shapes.sources import Sources
    from api.cli.shapes.statements import Statements
    from api.cli.shapes.statistics import Statistics
    from api.cli.shapes.tags import Tags
    from api.services.session import Session


class Target(Protocol):
    """A home's services, or a server's client."""

    def info(self) -> "Record":
        """Where things are and how much there is."""

    @property
    def jobs(self) -> "Jobs":
        """Training, validation and other long work."""

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
    def statements(self) -> "Statements":
        """Statements in SQL."""

    @property
    def statistics(self) -> "Statistics":
        """Statistics of frames."""

    @property
    def tags(self) -> "Tags":
        """Tags and tag families."""

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
    """The target that the command's options and the environment name: see api.cli.chosen.

    Args:
        makes: Make a home's stores where there are none: see api.cli.chosen.home.

    Raises:
        NotMade: It is a home that is not there.
    """
    return home_session(makes=makes) if chosen.server() is None else chosen.client()


def home_session(*, makes: bool = False) -> "Session":
    """The services of the home that the environment names.

    Args:
        makes: Make its stores where there are none: see api.cli.chosen.home.

    Raises:
        InvalidInput: A server was chosen, and this command cannot ask one.
    """
    from api.services.session import Session  # imports the home's stores as they are used

    return Session(chosen.home(makes=makes), is_command=True)
