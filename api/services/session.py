"""The services of a home for one caller: what HTTP, Discover's dialect, MCP and commands call."""

from functools import cached_property
from typing import TYPE_CHECKING

from api.services.call import Call

if TYPE_CHECKING:
    from api.services.audit import Audit
    from api.services.collections import Collections
    from api.services.datasets import Datasets
    from api.services.selections import Selections
    from api.services.statements import Statements
    from api.services.statistics import Statistics
    from api.services.tags import Tags
    from api.services.tokens import Tokens
    from api.services.users import Users


class Session(Call):
    """The services of a home, for one caller; each is imported when it is first used."""

    @cached_property
    def datasets(self) -> "Datasets":
        """Datasets."""
        from api.services.datasets import Datasets

        return Datasets(self.workspace, self.caller.user)

    @cached_property
    def selections(self) -> "Selections":
        """Questions and their answers."""
        from api.services.selections import Selections

        return Selections(self.workspace)

    @cached_property
    def statements(self) -> "Statements":
        """Statements in SQL."""
        from api.services.statements import Statements

        return Statements(self.workspace)

    @cached_property
    def statistics(self) -> "Statistics":
        """Statistics of frames."""
        from api.services.statistics import Statistics

        return Statistics(self.workspace)

    @cached_property
    def tags(self) -> "Tags":
        """Tags and tag families."""
        from api.services.tags import Tags

        return Tags(self.workspace)

    @cached_property
    def users(self) -> "Users":
        """Users."""
        from api.services.users import Users

        return Users(self)

    @cached_property
    def tokens(self) -> "Tokens":
        """Tokens."""
        from api.services.tokens import Tokens

        return Tokens(self)

    @cached_property
    def collections(self) -> "Collections":
        """Collections."""
        from api.services.collections import Collections

        return Collections(self)

    @cached_property
    def audit(self) -> "Audit":
        """The audit log."""
        from api.services.audit import Audit

        return Audit(self)
