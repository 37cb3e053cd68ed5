"""Joins of Discover's views that are joins of a file with itself, read as one scan.

`metaocean`, `metaocean_view` and every `t_<tag>` have at most one row for a file, named by fkey.
Those of them that a query equates on fkey are therefore one row of the tables behind them:

    from metaocean, t_car, t_bicycle          (select a.fkey, b.filename, a.car, a.bicycle
    where t_car.fkey = metaocean.fkey    ->    from class_pixels a join files b on b.fkey = a.fkey
      and t_bicycle.fkey = metaocean.fkey      where a.car is not null and a.bicycle is not null)

Which tables these are, the snapshot's layout says (catalog.lake.layouts): in memory they are one
scan of tagged_files, or of every_file where no tag must be there.

A tag's text, `value`, is the text of its column, so that db2.semantics can leave both casts out
where it makes a number of it again. DuckDB removes no self join by itself, not even on a primary
key; over the views such a statement took 6 times as long, at 10,000,000 frames 73 times one scan.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from catalog.lake.layouts import Scan, TableLayout
from catalog.lake.schema import FILES, FILES_COLUMNS
from catalog.values import TagColumn
from query.db2.calls import OF_ENGINE, VIEW_TEXT
from query.db2.nulls import columns_without_null, conjuncts
from query.run.collection_column import FILE_VIEWS, fill
from query.run.hash_lookups import has_hash, hashed, lookups, one_of

_FKEY = "fkey"


@dataclass(frozen=True)
class Tables:
    """Tables and columns behind the views."""

    tags: Mapping[str, TagColumn]
    """The column behind every tag, by its name in lower case."""
    layout: TableLayout
    """How the files and these columns lie in tables."""
    collection: str = ""
    """Value of the column of that name; see layouts.TableLayout."""
    few_values: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The values of text tags that lie as an ENUM; see layouts.TableLayout."""

    def schema(self) -> dict[str, dict[str, str]]:
        """Column types of the tables, as read_only.Schema has those of the views."""
        return self.layout.tables(self.tags)

    def exchange_views(self, query: exp.Query) -> None:
        """Rewrite ``query``, whose columns have their tables, in place.

        Args:
            query: What db2.names.with_tables gave.
        """
        count = 0
        for scope in traverse_scope(query):
            if isinstance(scope.expression, exp.Select):
                count = _Rewrite(scope, self, count).run()

    def finish(self, query: exp.Query) -> None:
        """Give files their collection, and read the parts of views in place of these, in place."""
        fill(query, self.collection, self.schema())
        tags = {tag.tag: tag for tag in self.tags.values()}
        for table in list(query.find_all(exp.Table)):
            parts = self.layout.parts.get(table.name) if table.db else None
            if parts and isinstance(table.parent_select, exp.Select):
                _exchange_parts(table.parent_select, table, parts, tags)


@dataclass
class _Member:
    """A view in a FROM clause."""

    alias: str
    view: str
    optional: bool = False
    """It is left-joined on fkey."""


@dataclass(frozen=True)
class _Stored:
    """A column of a table of the catalog."""

    table: str
    name: str


@dataclass
class _Row:
    """Derived table that replaces views of one row."""

    alias: str
    """The derived table's name."""
    members: list[_Member]
    columns: dict[str, _Stored] = field(default_factory=dict)
    """What the derived table must have, by its name there."""
    required: list[str] = field(default_factory=list)
    """Tables of tags that have a row for every result, in order."""
    optional: list[str] = field(default_factory=list)
    """Other tables of tags, whose columns may be null."""
    present: list[_Stored] = field(default_factory=list)
    """Columns that must not be null."""
    chosen: list[tuple[_Stored, Mapping[int, str]]] = field(default_factory=list)
    """Columns of few values, and those that alone are asked for, by their places among all."""

    @property
    def anchor(self) -> str:
        """The table whose fkey is the row's."""
        return self.required[0] if self.required else FILES


class _Rewrite:
    """Rewrite of one SELECT."""

    def __init__(self, scope: Scope, tables: Tables, count: int) -> None:
        self.scope, self.tables, self.count = scope, tables, count
        self.tags = tables.tags
        select = scope.expression
        if not isinstance(select, exp.Select):
            raise TypeError(f"expected a SELECT, got a {select.key}")
        self.select = select
        self.joins: list[exp.Join] = list(self.select.args.get("joins") or [])

    def run(self) -> int:
        """Rewrite it if it can be, and return the number of derived tables by now."""
        members = self._members()
        if not members or any(self._keeps_order(join) for join in self.joins):
            return self.count
        classes = self._classes(members)
        for row in [row for row in classes if len(row) > 1 or self._is_made_faster(row[0])]:
            self._replace(row)
        return self.count

    def _is_made_faster(self, member: _Member) -> bool:
        """Return whether the tables behind a view that is a row by itself are read faster."""
        return member.view != "metaocean" or any(
            column.table == member.alias for column, _ in self._lookups()
        )

    def _lookups(self) -> Iterator[tuple[exp.Column, Sequence[str]]]:
        """Columns with a stored hash that are equated with one of few texts, and the texts."""
        where = self.select.args.get("where")
        return lookups(where and where.this, self._hashes)

    @property
    def _hashes(self) -> Mapping[str, tuple[str, str]]:
        return self.tables.layout.hashes

    # What is there

    def _members(self) -> dict[str, _Member]:
        members = {}
        for source, join in self._sources():
            if not isinstance(source, exp.Table) or source.args.get("joins"):
                continue
            alias, view = source.alias_or_name, source.name.lower()
            if not isinstance(self.scope.sources.get(alias), exp.Table):
                continue  # a common table expression of that name
            known = view in FILE_VIEWS or (view[:2] == "t_" and view[2:] in self.tags)
            if not known or self._is_shadowed(alias):
                continue
            if join is None or _is_inner(join):
                members[alias] = _Member(alias, view)
            elif join.side == "LEFT" and view not in FILE_VIEWS:
                members[alias] = _Member(alias, view, optional=True)
        return members

    def _sources(self) -> Iterator[tuple[exp.Expr, exp.Join | None]]:
        start = self.select.args.get("from_")
        if start is not None:
            yield start.this, None
        for join in self.joins:
            yield join.this, join

    def _is_shadowed(self, alias: str) -> bool:
        """Return whether a query inside has a source of that name: columns are then ambiguous."""
        return any(
            inner is not self.select
            and any(source.alias_or_name == alias for source in _named(inner))
            for inner in self.select.find_all(exp.Select)
        )

    @staticmethod
    def _keeps_order(join: exp.Join) -> bool:
        return (
            join.side in ("RIGHT", "FULL")
            or bool(join.method)
            or bool(join.args.get("using"))
            or join.kind not in ("", "INNER", "CROSS", "OUTER")
        )

    def _classes(self, members: dict[str, _Member]) -> list[list[_Member]]:
        """Members that are one row, each class in order of the FROM clause."""
        of = {alias: alias for alias, member in members.items() if not member.optional}

        def root(alias: str) -> str:
            while of[alias] != alias:
                alias = of[alias]
            return alias

        for condition in self._conditions():
            pair = _equated(condition)
            if pair is not None and all(alias in of for alias in pair):
                of[root(pair[0])] = root(pair[1])
        for join in self.joins:
            alias = _alias_of(join.this)
            pair = _equated(join.args.get("on"))
            if pair is None or alias not in pair or alias not in members or alias in of:
                continue
            other = pair[1] if pair[0] == alias else pair[0]
            if other in of and not members[other].optional:
                of[alias] = other
        classes: dict[str, list[_Member]] = {}
        for alias, member in members.items():
            if alias in of:
                classes.setdefault(root(alias), []).append(member)
        return list(classes.values())

    def _conditions(self) -> Iterator[exp.Expr]:
        """Conditions that hold for every row, as far as AND takes them apart."""
        where = self.select.args.get("where")
        if where is not None:
            yield from conjuncts(where.this)
        for join in self.joins:
            if _is_inner(join) and join.args.get("on") is not None:
                yield from conjuncts(join.args["on"])

    # What it becomes

    def _replace(self, members: list[_Member]) -> None:
        row = _Row(f"_row_{self.count}", members)
        self.count += 1
        aliases = {member.alias: member for member in members}
        for member in members:
            self._require(row, member)
        derived = exp.Subquery(alias=exp.TableAlias(this=exp.to_identifier(row.alias, quoted=True)))
        self._take_out(aliases, derived)
        self._look_up(row, aliases)
        self._choose(row, aliases)
        for column in list(self.select.find_all(exp.Column)):
            if column.table in aliases:
                column.replace(self._column(row, aliases[column.table], column.name))
        derived.set("this", self._derived(row))

    def _look_up(self, row: _Row, aliases: Mapping[str, _Member]) -> None:
        """Find a file by the hash of what names it, too: no text is read then but its own."""
        table = self.tables.layout.scan(row.required, (), True).tables[0]
        for column, texts in list(self._lookups()):
            member = aliases.get(column.table)
            if member is None or member.optional:
                continue
            if member.view not in FILE_VIEWS and column.name != _FKEY:
                continue
            name, function = self._hashes[column.name]
            stored = self._of(row, f"h_{name}", FILES, name)
            found = has_hash(stored, hashed(column, texts), function, name, table)
            self.select.where(found, copy=False)

    def _choose(self, row: _Row, aliases: Mapping[str, _Member]) -> None:
        """Choose among the few values of a text: a number is compared then, and no text."""
        where = self.select.args.get("where")
        remaining = []
        for condition in conjuncts(where.this) if where is not None else ():
            column, texts = one_of(condition)
            tag = self._encoded(column, aliases)
            if tag is None:
                remaining.append(condition)
                continue
            # Blanks at the end do not count.
            wanted = {text.rstrip(" ") for text in texts}
            values = self.tables.few_values[tag.tag]
            chosen = {n: value for n, value in enumerate(values) if value.rstrip(" ") in wanted}
            if tag.table not in row.required:
                row.required.append(tag.table)
            row.chosen.append((_Stored(tag.table, tag.tag), chosen))
        if row.chosen:
            holds = exp.Where(this=exp.and_(*remaining, copy=False)) if remaining else None
            self.select.set("where", holds)

    def _encoded(self, column: exp.Expr | None, aliases: Mapping[str, _Member]) -> TagColumn | None:
        """The tag of few values that a column of a member gives the text of."""
        member = aliases.get(column.table) if isinstance(column, exp.Column) else None
        if column is None or member is None or member.optional or column.name == _FKEY:
            return None
        name = column.name if member.view in FILE_VIEWS else member.view[2:]
        tag = None if name in FILES_COLUMNS else self.tags.get(name)
        return tag if tag is not None and tag.tag in self.tables.few_values else None

    def _require(self, row: _Row, member: _Member) -> None:
        if member.view in FILE_VIEWS:
            self._require_compared(row, member)
            return
        tag = self.tags[member.view[2:]]
        if member.optional:
            return
        if tag.table not in row.required:
            row.required.append(tag.table)
        row.present.append(_Stored(tag.table, tag.tag))

    def _require_compared(self, row: _Row, member: _Member) -> None:
        """Require the tables of metaocean_view's tags for which a condition holds with no null."""
        where = self.select.args.get("where")
        for condition in conjuncts(where.this) if where is not None else ():
            for column in columns_without_null(condition):
                tag = self.tags.get(column.name)
                if column.table != member.alias or column.name in FILES_COLUMNS or tag is None:
                    continue
                if tag.table not in row.required:
                    row.required.append(tag.table)

    def _column(self, row: _Row, member: _Member, name: str) -> exp.Expr:
        """The expression in the derived table for a column of a member."""
        if name == _FKEY:
            if not member.optional:
                return self._of(row, _FKEY, row.anchor, _FKEY)
            value = self._tag(row, self.tags[member.view[2:]])
            fkey = self._of(row, _FKEY, row.anchor, _FKEY)
            return exp.Case(ifs=[exp.If(this=_is_present(value), true=fkey)])
        if member.view not in FILE_VIEWS:
            tag = self.tags[member.view[2:]]
            return _text(self._tag(row, tag), tag.type)
        if name in FILES_COLUMNS:
            return self._of(row, f"f_{name}", FILES, name)
        behind = self.tags.get(name)
        if behind is None:  # a column that the product has and no source fills
            return exp.Cast(this=exp.Null(), to=exp.DataType.build("varchar"))
        return _text(self._tag(row, behind), behind.type)

    def _tag(self, row: _Row, tag: TagColumn) -> exp.Column:
        return self._of(row, f"t_{tag.tag}", tag.table, tag.tag)

    def _of(self, row: _Row, name: str, table: str, column: str) -> exp.Column:
        if table not in row.required and table != FILES and table not in row.optional:
            row.optional.append(table)
        row.columns.setdefault(name, _Stored(table, column))
        return exp.column(name, table=row.alias, quoted=True)

    def _derived(self, row: _Row) -> exp.Select:
        columns = row.columns or {_FKEY: _Stored(row.anchor, _FKEY)}
        uses_files = any(column.table == FILES for column in columns.values())
        scan = self.tables.layout.scan(row.required, row.optional, uses_files)
        anchor, *further = scan.tables
        select = exp.Select(
            expressions=[
                exp.alias_(self._value(scan, column), name, quoted=True)
                for name, column in columns.items()
            ]
        ).from_(_table(anchor))
        for table in further:
            select = select.join(_table(table), on=_same_file(table, anchor))
        for table in scan.optional:
            select = select.join(_table(table), on=_same_file(table, anchor), join_type="left")
        for column in self._to_check(row):
            select = select.where(_is_present(_lying(scan, column)), copy=False)
        for column, values in row.chosen:
            select = select.where(_is_one_of(_lying(scan, column), values), copy=False)
        return select

    def _value(self, scan: Scan, column: _Stored) -> exp.Expr:
        is_tag = column.table != FILES and column.name != _FKEY
        kind = self.tags[column.name.lower()].type if is_tag else ""
        lying = _lying(scan, column)
        is_encoded = kind == "VARCHAR" and self.tables.layout.encodes_texts
        return _as_text(lying, kind) if is_encoded else lying

    def _to_check(self, row: _Row) -> list[_Stored]:
        """Columns that must not be null, but for those that a condition rejects nulls of anyway."""
        where = self.select.args.get("where")
        conditions = [] if where is None else list(conjuncts(where.this))
        rejected = {
            column.name
            for condition in conditions
            for column in columns_without_null(condition)
            if column.table == row.alias
        }
        return [column for column in row.present if f"t_{column.name}" not in rejected]

    def _take_out(self, aliases: dict[str, _Member], derived: exp.Subquery) -> None:
        """Put the derived table where the members were; what their ON said more goes to WHERE."""
        where = self.select.args.get("where")
        conditions = [] if where is None else list(conjuncts(where.this))
        joins: list[exp.Join] = []
        for join in self.joins:
            if _alias_of(join.this) not in aliases:
                joins.append(join)
            elif _is_inner(join) and join.args.get("on") is not None:
                conditions += conjuncts(join.args["on"])
        start = self.select.args["from_"]
        if _alias_of(start.this) in aliases:
            start.set("this", derived)
        else:
            joins.insert(0, exp.Join(this=derived))
        for join in joins:
            # A comma would bind less than the joins that follow.
            if not (join.side or join.kind or join.args.get("on")):
                join.set("kind", "CROSS")
        self.joins = joins
        self.select.set("joins", joins)
        remaining = [
            condition for condition in conditions if not _within(_equated(condition), aliases)
        ]
        holds = exp.Where(this=exp.and_(*remaining, copy=False)) if remaining else None
        self.select.set("where", holds)


def _is_one_of(column: exp.Column, values: Mapping[int, str]) -> exp.Expr:
    """The condition that an ENUM has one of these values.

    DuckDB compares it as a number with one text, and by its own text with several.
    """
    condition: exp.Expr = exp.false()
    if len(values) == 1:
        condition = exp.EQ(this=column, expression=exp.Literal.string(*values.values()))
    elif values:
        code = exp.Anonymous(this="enum_code", expressions=[column])
        condition = exp.In(this=code, expressions=[exp.Literal.number(one) for one in values])
    condition.meta[OF_ENGINE] = True
    return condition


def _exchange_parts(
    select: exp.Select, table: exp.Table, parts: Sequence[str], tags: Mapping[str, TagColumn]
) -> None:
    """Read a view's parts, of which the first alone has tags; of each the columns named."""
    alias = table.alias_or_name
    names = dict.fromkeys(
        column.name for column in select.find_all(exp.Column) if column.table == alias
    )
    rows: exp.Query | None = None
    for number, part in enumerate(parts):
        values = [
            exp.alias_(
                exp.column(name, quoted=True)
                if number == 0 or name not in tags
                else exp.cast(exp.Null(), tags[name].type),
                name,
                quoted=True,
            )
            for name in names
        ]
        of_part = exp.Select(expressions=values or [exp.alias_("1", "one")]).from_(
            exp.table_(part, db="main", quoted=True)
        )
        rows = of_part if rows is None else exp.union(rows, of_part, distinct=False, copy=False)
    name = exp.TableAlias(this=exp.to_identifier(alias, quoted=True))
    table.replace(exp.Subquery(this=rows, alias=name))


def _is_inner(join: exp.Join) -> bool:
    return not join.side and not join.method and join.kind in ("", "INNER", "CROSS")


def _alias_of(source: exp.Expr) -> str:
    """The name that a query gives a table; empty where it is none."""
    return source.alias_or_name if isinstance(source, exp.Table) else ""


def _equated(condition: exp.Expr | None) -> tuple[str, str] | None:
    """The two tables whose fkeys a condition equates."""
    comparison = None if condition is None else condition.unnest()
    if not isinstance(comparison, exp.EQ):
        return None
    left, right = comparison.left.unnest(), comparison.right.unnest()
    if not (isinstance(left, exp.Column) and isinstance(right, exp.Column)):
        return None
    return (left.table, right.table) if left.name == right.name == _FKEY else None


def _within(pair: tuple[str, str] | None, aliases: Mapping[str, _Member]) -> bool:
    """Return whether both are members that every result has."""
    return pair is not None and all(
        alias in aliases and not aliases[alias].optional for alias in pair
    )


def _named(select: exp.Select) -> Iterator[exp.Expr]:
    start = select.args.get("from_")
    if start is not None:
        yield start.this
    yield from (join.this for join in select.args.get("joins") or [])


def _text(column: exp.Column, kind: str) -> exp.Expr:
    return column if kind == "VARCHAR" else _as_text(column, kind)


def _as_text(column: exp.Column, kind: str) -> exp.Expr:
    text = exp.Cast(this=column, to=exp.DataType.build("varchar"))
    text.meta[VIEW_TEXT] = kind
    return text


def _table(name: str) -> exp.Table:
    return exp.table_(name, db="main", quoted=True, alias=f"_{name}")


def _same_file(table: str, anchor: str) -> exp.Expr:
    return exp.EQ(this=_base(table, _FKEY), expression=_base(anchor, _FKEY))


def _base(table: str, column: str) -> exp.Column:
    return exp.column(column, table=f"_{table}", quoted=True)


def _lying(scan: Scan, column: _Stored) -> exp.Column:
    return _base(scan.holding(column.table), column.name)


def _is_present(column: exp.Column) -> exp.Expr:
    return exp.Not(this=exp.Is(this=column, expression=exp.Null()))
