"""Regular expressions by name, for rules of policies: what can be done with them."""

from api.schemas.policies import RegexBody
from api.services.call import Service
from catalog.policies import regexes


class Regexes(Service):
    """Regular expressions of a home."""

    def list(self) -> list[RegexBody]:
        """Every one, by name."""
        return [RegexBody.of(regex) for regex in regexes.listed(self._records)]

    def get(self, name: str) -> RegexBody:
        """The one of that name."""
        return RegexBody.of(regexes.recorded(self._records, name))

    def add(self, name: str, pattern: str, description: str) -> RegexBody:
        """Keep a new one: catalog.policies.regexes.add."""
        return RegexBody.of(regexes.add(self._records, name, pattern, description))

    def change(self, name: str, pattern: str | None, description: str | None) -> RegexBody:
        """Give it another pattern or description; None keeps what it has."""
        return RegexBody.of(regexes.change(self._records, name, pattern, description))

    def remove(self, name: str) -> None:
        """Forget it; a rule that names it fails from then on."""
        regexes.remove(self._records, name)
