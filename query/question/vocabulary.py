"""The classes, tags and columns that a question may name, and how SQL writes them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from catalog.errors import InvalidInput, UnknownName
from catalog.lake.schema import VIEW_COLUMNS
from query.db2.dialect import Db2
from query.question.operators import TagType, type_of

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_WORDS = {words.split()[0] for words in Db2.Tokenizer.KEYWORDS if words.strip()}
"""Words that begin something else in SQL."""

_MADE = {
    "image_size": "size",
    "image_file": "substr(fkey, length(cluster) + length(datasource) + 3)",
}
"""Columns that only selections have, as metaocean_view's columns say them."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column that a question names."""

    name: str
    type: TagType
    engine_type: str
    """DuckDB's type of it."""
    sql: str
    """The column in Db2's SQL."""
    is_text: bool
    """metaocean_view shows it as text, whatever its type."""


@dataclass(frozen=True)
class Vocabulary:
    """The names of one snapshot."""

    columns: Mapping[str, str]
    """DuckDB type of every column that a condition or an order may name."""
    tags: frozenset[str]
    """Those of them that are tags."""
    class_names: Mapping[str, str]
    """Class name of each class tag; a class group is called as its tag is."""

    def class_tag(self, name: str) -> Column:
        """The class of that tag or title.

        Raises:
            UnknownName: There is none.
        """
        column = self.numeric_column(name)
        if column.name not in self.class_names:
            raise self._no_class(name)
        return column

    def numeric_column(self, name: str) -> Column:
        """The class, or any other tag with numbers, of that tag or title.

        Raises:
            UnknownName: There is none.
            InvalidInput: It has no numbers.
        """
        tags = {title.lower(): tag for tag, title in self.class_names.items()}
        tag = tags.get(name.lower(), name.lower())
        if tag not in self.tags:
            raise self._no_class(name, [one for one in self.tags if self._has_numbers(one)])
        column = self.column(tag)
        if column.type != "number":
            raise InvalidInput(
                f"range of {tag}: the tag is {column.type}, not a number; compare it with a "
                "condition of kind tag"
            )
        return column

    def _has_numbers(self, tag: str) -> bool:
        return type_of(self.columns[tag]) == "number"

    def _no_class(self, name: str, more_names: Iterable[str] = ()) -> UnknownName:
        if not self.class_names:
            hint = "No labels are counted yet: framesift ingest SOURCE does that."
            return UnknownName("class", name, (), hint)
        return UnknownName(
            "class", name, {*self.class_names, *self.class_names.values(), *more_names}
        )

    def tag(self, name: str) -> Column:
        """The tag of that name, or the file's column.

        Raises:
            UnknownName: There is none.
        """
        known = {*self.tags, *_MADE, *(column for column in VIEW_COLUMNS if column in self.columns)}
        if name.lower() not in known:
            raise UnknownName("tag", name, known)
        return self.column(name.lower())

    def column(self, name: str) -> Column:
        """The column of exactly that name."""
        kind = self.columns[name]
        quoted = name if _PLAIN.fullmatch(name) and name.upper() not in _WORDS else f'"{name}"'
        return Column(name, type_of(kind), kind, _MADE.get(name, quoted), name in self.tags)

    def title(self, column: Column) -> str:
        """The column's name in a sentence: a class by its title, small unless an abbreviation."""
        title = self.class_names.get(column.name, column.name)
        return title if title[1:2].isupper() else title[:1].lower() + title[1:]
