"""Statements that were seen before are not parsed, checked and rewritten again."""

from dataclasses import dataclass, field

from catalog.lake.snapshot import Snapshot
from query.db2 import read_only
from query.db2.names import Views
from query.db2.semantics import to_duckdb
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
        query = read_only.parse(text, self.schema)
        read_only.check(query, self.schema)
        join_open_tags(query, self.schema, self.open_tags)
        return to_duckdb(query, self.schema, self.tables)


def prepare(snapshot: Snapshot, text: str) -> str:
    """A Db2 statement as DuckDB's.

    Raises:
        SqlError: The statement is refused or wrong.
    """
    collection = snapshot.collection if may_name_it(text) else ""
    known = snapshot.once(f"statements {collection}", lambda: _of(snapshot, collection))
    return known.templates.rewritten(text, known.rewritten)


def _of(snapshot: Snapshot, collection: str) -> _Known:
    tags = {name.lower(): column for name, column in snapshot.tags.items()}
    tables = Tables(tags, snapshot.layout, collection)
    return _Known(Views(snapshot.schema), tables, open_tags(snapshot))
