"""Rules for tags: their types, kinds and values."""

from collections.abc import Sequence
from dataclasses import dataclass

from catalog.errors import InvalidInput

TYPES = {
    "integer": "BIGINT",
    "real": "DOUBLE",
    "text": "VARCHAR",
    "timestamp": "TIMESTAMP",
    "boolean": "BOOLEAN",
}
"""Types of a tag that a person adds, and the catalog's for each."""

OWN_FAMILY = "own"
"""Family of tags that are added one by one."""

LONGEST = {"Open": 256, "Restricted": 256, "Characteristics": 4096}
"""Characters of a value, by kind."""

_SHOWN = 12


@dataclass(frozen=True, slots=True)
class TagKind:
    """The kind of a tag, which limits its values."""

    kind: str = "Characteristics"
    """A key of LONGEST."""
    allowed: tuple[str, ...] = ()
    """The values of a Restricted tag, as text; empty for other kinds."""

    def refusal(self, value: str) -> str | None:
        """Why a value is refused; None where it may be."""
        longest = LONGEST[self.kind]
        if len(value) > longest:
            return (
                f"has {len(value):,} characters; a tag of kind {self.kind} has at most {longest:,}"
            )
        if self.kind == "Restricted" and value not in self.allowed:
            more = ", ..." if len(self.allowed) > _SHOWN else ""
            return f"is none of its values {', '.join(self.allowed[:_SHOWN])}{more}"
        return None


DEFAULT = TagKind()


def kind_named(name: str, allowed: Sequence[str] = ()) -> TagKind:
    """The kind of that name, in any case, with the values of a Restricted tag.

    Raises:
        InvalidInput: There is no such kind, or its values cannot be.
    """
    kind = next((known for known in LONGEST if known.lower() == name.lower()), None)
    if kind is None:
        raise InvalidInput(f"kind '{name}': expected one of {', '.join(LONGEST)}")
    if kind != "Restricted":
        if allowed:
            raise InvalidInput(f"values of a tag of kind {kind}: only a Restricted tag has them")
        return TagKind(kind)
    if not allowed:
        raise InvalidInput("a Restricted tag needs its values, such as rain,sun,fog")
    for value in allowed:
        if not value or len(value) > LONGEST[kind] or list(allowed).count(value) > 1:
            raise InvalidInput(
                f"value '{value[:80]}' of a Restricted tag: expected each value once, of 1 to "
                f"{LONGEST[kind]} characters"
            )
    return TagKind(kind, tuple(allowed))
