"""The order in which pages of frames come, and which frames it has before and behind one."""

from collections.abc import Collection
from dataclasses import dataclass

from catalog.errors import InvalidInput, UnknownName
from query.statistics.population import POPULATION


@dataclass(frozen=True)
class FrameOrder:
    """By a column, frames without a value last, then by fkey."""

    column: str = "fkey"
    falling: bool = False
    """The highest values come first."""

    @classmethod
    def parse(cls, text: str) -> "FrameOrder":
        """The order that a text such as ``car desc`` says; by fkey when it is empty.

        Raises:
            InvalidInput: A direction is neither 'asc' nor 'desc'.
        """
        column, _, direction = text.strip().lower().partition(" ")
        if direction.strip() not in ("", "asc", "desc"):
            raise InvalidInput(
                f"order '{text[:80]}': expected a name, and 'desc' for falling order"
            )
        return cls(column or "fkey", direction.strip() == "desc")

    def check(self, columns: Collection[str]) -> None:
        """Go on only where frames have the column.

        Raises:
            UnknownName: They have not.
        """
        if self.column not in columns:
            raise UnknownName("column", self.column[:80], columns, "It is given in the order.")

    @property
    def by(self) -> str:
        """What ORDER BY lists."""
        direction = "DESC" if self.falling else "ASC"
        return f'"{self.column}" {direction} NULLS LAST, fkey'

    @property
    def turned(self) -> str:
        """`by` the other way round."""
        direction = "ASC" if self.falling else "DESC"
        return f'"{self.column}" {direction} NULLS FIRST, fkey DESC'

    @property
    def here(self) -> str:
        """A relation of one row, or none: a frame of the population, its fkey bound once."""
        return (
            f'SELECT fkey AS here_fkey, "{self.column}" AS here_value FROM {POPULATION} '
            "WHERE fkey = ?"
        )

    @property
    def is_behind(self) -> str:
        """A condition on a row of the population joined with `here`: the order has it behind."""
        return self._beyond("<" if self.falling else ">", "here_value IS NOT NULL", "IS NULL", ">")

    @property
    def is_before(self) -> str:
        """The same: the order has it before."""
        return self._beyond(">" if self.falling else "<", "here_value IS NULL", "IS NOT NULL", "<")

    def _beyond(self, sign: str, where_here: str, is_then: str, of_fkey: str) -> str:
        column = f'"{self.column}"'
        return (
            f"({column} {sign} here_value OR ({where_here} AND {column} {is_then}) OR "
            f"({column} IS NOT DISTINCT FROM here_value AND fkey {of_fkey} here_fkey))"
        )
