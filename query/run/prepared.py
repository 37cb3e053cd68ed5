"""Statements that were seen before are not parsed, checked and rewritten again."""

from dataclasses import dataclass, field

from sqlglot import exp

from catalog.lake.snapshot import Snapshot
from query.db2 import read_only
from query.db2.names import Views, output_columns
from query.db2.semantics import to_duckdb
from query.db2.typography import as_typed
from query.run import text_lists
from query.run.collection_column import may_name_it
from query.run.join_elimination import Tables
from query.run.open_tags import join_open_tags, open_tags
from query.run.templates import Templates

STATEMENTS = 256
"""Shapes of statements kept for each snapshot, those not asked for longest go first."""


@dataclass
class _Known:
    """The views of one snapshot, and the rewritten statements that ask them."""

    schema: Views
    tables: Tables
    open_tags: frozenset[str] = frozenset()
    templates: Templates = field(default_factory=lambda: Templates(STATEMENTS))

    def rewritten(self, text: str) -> str:
        """A Db2 statement as DuckDB's."""
        return to_duckdb(self.checked(text), self.schema, self.tables)

    def checked(self, text: str) -> exp.Query:
        """A Db2 statement that only reads, with the tags that it takes from metaocean."""
        query = read_only.parse(text, self.schema)
        read_only.check(query, self.schema)
        join_open_tags(query, self.schema, self.open_tags)
        return query


def prepare(snapshot: Snapshot, text: str) -> str:
    """A Db2 statement as DuckDB's."""
    plain = as_typed(text)
    known = _known(snapshot, snapshot.collection if may_name_it(plain) else "")
    return text_lists.rewritten(
        plain, lambda statement: known.templates.rewritten(statement, known.rewritten)
    )


def result_columns(snapshot: Snapshot, text: str) -> list[str]:
    """The names of the columns that a Db2 statement gives, in lower case."""
    known = _known(snapshot)
    return output_columns(known.checked(text), known.schema)


def _known(snapshot: Snapshot, collection: str = "") -> _Known:
    return snapshot.once_of_names(f"statements {collection}", lambda: _of(snapshot, collection))


def _of(snapshot: Snapshot, collection: str) -> _Known:
    tags = {name.lower(): column for name, column in snapshot.tags.items()}
    tables = Tables(tags, snapshot.layout, collection, snapshot.layout.few_values(snapshot))
    return _Known(Views(snapshot.schema), tables, open_tags(snapshot))
