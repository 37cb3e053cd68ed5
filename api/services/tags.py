"""Tags and tag families: what can be done with them."""

import builtins
import csv
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from api.schemas.tags import (
    FamilyBody,
    FamilyDropped,
    ImportBody,
    MapJoinBody,
    ScoresBody,
    TagBody,
    TagRemoved,
    TagValue,
    TagValuesAnswer,
)
from api.services.call import Service
from catalog.errors import InvalidInput, NotFound
from catalog.lake.schema import FILES
from catalog.lake.views import tag_columns
from catalog.records.expected_version import ExpectedVersion
from catalog.records.jobs import recorded_job
from catalog.tags import families as tag_families
from catalog.tags import tags
from catalog.tags.class_groups import define_group
from catalog.tags.confusion_cells import scored_models
from catalog.tags.tag_kinds import kinds, tag_version
from catalog.tags.tag_rules import DEFAULT, OWN_FAMILY
from ingest.imports.options import LATITUDE, LONGITUDE, Key

_TABLE = "tags_"
_OWN = _TABLE + OWN_FAMILY

_MARKED = "marked_files"


class Tags(Service):
    """Tags of a home; what lists them does without what imports values."""

    def list(self, *, at: int | None = None) -> list[TagBody]:
        """Every tag by name, of a catalog snapshot or the newest."""
        return sorted(self.by_creation(at=at), key=lambda body: body.tag)

    def by_creation(self, *, at: int | None = None) -> builtins.list[TagBody]:
        """Every tag in order of creation, of a catalog snapshot or the newest."""
        titles = self._workspace.class_names()
        with self._workspace.catalog.reading(at) as cursor:
            columns, rules, groups = tag_columns(cursor), kinds(cursor), cursor.groups
        return [
            TagBody(
                tag=column.tag,
                family=column.table,
                type=column.type.lower(),
                kind=kind.kind,
                values=list(kind.allowed),
                title=titles.get(column.tag, ""),
                classes=list(groups.get(column.tag, ())),
            ).of_version(tag_version(column, kind, groups.get(column.tag, ())))
            for column in columns
            for kind in (rules.get(column.tag, DEFAULT),)
        ]

    def class_names(self) -> dict[str, str]:
        """Class name of each tag that counts a class's pixels, in class order."""
        return self._workspace.class_names()

    def classes_and_groups(self) -> dict[str, str]:
        """`class_names`, and behind them the newest class groups, called as their tags are."""
        with self._workspace.catalog.reading() as snapshot:
            return {**self.class_names(), **{tag: tag for tag in snapshot.groups}}

    def get(self, tag: str, *, at: int | None = None) -> TagBody:
        """A tag.

        Raises:
            NotFound: There is none of that name.
        """
        for body in self.list(at=at):
            if body.tag == tag:
                return body
        raise self._no_tag(tag)

    def _no_tag(self, tag: str) -> NotFound:
        return NotFound("tag", tag[:80], "framesift tags list, or GET /v1/tags, lists them")

    def add(
        self,
        name: str,
        type: str = "text",  # noqa: A002
        *,
        kind: str | None = None,
        values: Sequence[str] = (),
        family: str | None = None,
    ) -> TagBody:
        """Add a tag that no file has a value of yet: catalog.tags.tags.add_tag."""
        tags.add_tag(
            self._workspace.whole_catalog,
            name,
            type,
            DEFAULT.kind if kind is None else kind,
            values,
            OWN_FAMILY if family is None else family,
        )
        return self.get(name)

    def group(self, tag: str, classes: Sequence[str]) -> TagBody:
        """Define a tag as the sum of classes' pixels: catalog.tags.class_groups.define_group."""
        define_group(self._workspace.whole_catalog, tag, classes)
        return self.get(tag)

    def groups(self, *, at: int | None = None) -> builtins.list[TagBody]:
        """Class groups in order of creation, of a catalog snapshot or the newest."""
        return [body for body in self.by_creation(at=at) if body.classes]

    def set(
        self,
        tag: str,
        kind: str,
        *,
        values: Sequence[str] = (),
        expected: ExpectedVersion | None = None,
    ) -> TagBody:
        """Give a tag another kind or other values: catalog.tags.tags.set_kind."""
        tags.set_kind(self._workspace.whole_catalog, tag, kind, values, expected)
        return self.get(tag)

    def remove(self, tag: str, *, expected: ExpectedVersion | None = None) -> TagRemoved:
        """Remove a tag with its values; older snapshots keep it."""
        return TagRemoved(
            tag=tag, files=tags.drop_tag(self._workspace.whole_catalog, tag, expected)
        )

    def values(self, tag: str, *, at: int | None = None, limit: int = 100) -> TagValuesAnswer:
        """The most frequent values of a tag, and how many files have each.

        Raises:
            NotFound: There is no such tag.
        """
        with self._workspace.catalog.reading(at) as cursor:
            if tag not in {column.tag for column in tag_columns(cursor)}:
                raise self._no_tag(tag)
            rows = cursor.execute(
                "SELECT value, count(*) AS files, count(*) OVER () AS found "
                f'FROM "t_{tag}" GROUP BY value ORDER BY files DESC, value LIMIT ?',
                [limit],
            ).fetchall()
        return TagValuesAnswer(
            values=[TagValue(value=value, files=files) for value, files, _ in rows],
            distinct=rows[0][2] if rows else 0,
        )

    def families(self) -> builtins.list[FamilyBody]:
        """Every tag family, in order of creation."""
        return [FamilyBody.of(family) for family in tag_families.families(self._workspace.catalog)]

    def family(self, name: str) -> FamilyBody:
        """A tag family.

        Raises:
            NotFound: There is none of that name.
        """
        for body in self.families():
            if body.name == name:
                return body
        raise NotFound(
            "tag family", name[:80], "framesift tags families, or GET /v1/families, lists them"
        )

    def drop(self, family: str, *, expected: ExpectedVersion | None = None) -> FamilyDropped:
        """Remove a tag family with its tags and values; older snapshots keep it."""
        rows = tag_families.drop(self._workspace.whole_catalog, family, expected)
        return FamilyDropped(family=family, rows=rows)

    def import_values(
        self,
        file: Path,
        family: str,
        *,
        key: Key | None = None,
        key_column: str | None = None,
        type: Sequence[str] = (),  # noqa: A002
        prefix: str = "",
        datasource: str | None = None,
        most_bytes: int | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> ImportBody:
        """Give files tags from a table: ingest.imports.tag_import.import_tags.

        Args:
            key: What names a file.
            key_column: Column of the key.
            type: "TAG=TYPE" of tags whose type is not inferred.
            prefix: Put before every tag's name.
            datasource: Match files of this datasource only.
            most_bytes: What the values of a file that a client sent may take [bytes].
            stopped: Whether nobody waits for it any more.
        """
        from ingest.imports.tag_import import import_tags, parse_types

        result = import_tags(
            self._workspace.whole_catalog,
            file,
            family,
            key=key,
            key_column=key_column,
            types=parse_types(type),
            prefix=prefix,
            datasource=datasource,
            most_bytes=most_bytes,
            stopped=stopped,
        )
        return ImportBody.of(result)

    def mark(self, fkeys: Sequence[str], values: Mapping[str, str]) -> ImportBody:
        """Give frames values of tags, in one commit; "" takes a tag's value from them.

        A tag that is new becomes one of the users' own, of the type that its value has.

        Raises:
            InvalidInput: No frame, no tag, or the labels or an extractor give the tag.
        """
        if not fkeys or not values:
            raise InvalidInput("mark: expected a frame or more, and a tag or more with its value")
        families = {column.tag: column.family for column in self.by_creation()}
        tables = {families.get(tag, _OWN).removeprefix(_TABLE) for tag in values}
        if len(tables) > 1:
            named = ", ".join(sorted(tables))
            raise InvalidInput(f"mark: tags of families {named}: mark those of one at a time")
        self._check_files(fkeys)
        rows = ([fkey, *values.values()] for fkey in dict.fromkeys(fkeys))
        return self._write(tables.pop(), values, rows)

    def restore(
        self, fkeys: Sequence[str], tags: Sequence[str], *, at: int, unless_changed_since: int
    ) -> tuple[int, int]:
        """Give frames the values of tags back that they had in an older snapshot, in one commit.

        Args:
            tags: Of one family; one that the snapshot has not yet is taken from the frames.
            at: The older snapshot.
            unless_changed_since: A frame that has another value of one of the tags than in this
                snapshot keeps what it has.

        Returns:
            How many frames have these values again, and how many keep what they have.

        Raises:
            InvalidInput: No frame, no tag, or tags of several families.
        """
        families = {column.tag: column.family for column in self.by_creation()}
        tables = {families[tag].removeprefix(_TABLE) for tag in tags if tag in families}
        if not fkeys or len(tables) != 1:
            raise InvalidInput("restore: expected a frame or more, and tags of one family")
        known = [tag for tag in dict.fromkeys(tags) if tag in families]
        now = self._workspace.catalog.snapshot()
        before, then, current = (
            {tag: self._texts_at(tag, fkeys, number) for tag in known}
            for number in (at, unless_changed_since, now)
        )
        unchanged = [
            fkey
            for fkey in dict.fromkeys(fkeys)
            if all(then[tag].get(fkey) == current[tag].get(fkey) for tag in known)
        ]
        rows = ([fkey, *(before[tag].get(fkey, "") for tag in known)] for fkey in unchanged)
        if unchanged:
            self._write(tables.pop(), known, rows)
        return len(unchanged), len({*fkeys}) - len(unchanged)

    def _write(
        self, family: str, tags: Collection[str], rows: Iterable[Sequence[str]]
    ) -> ImportBody:
        """Import rows of fkey and a value of each tag."""
        with TemporaryDirectory(prefix="framesift-") as folder:
            file = Path(folder, "marks.csv")
            with file.open("w", encoding="utf-8", newline="") as out:
                table = csv.writer(out, quoting=csv.QUOTE_ALL)
                table.writerow(["fkey", *tags])
                table.writerows(rows)
            return self.import_values(file, family, key="fkey")

    def _texts_at(self, tag: str, fkeys: Sequence[str], at: int) -> dict[str, str]:
        """The value of a tag in a snapshot, as text, by fkey of the frames that have one."""
        import pyarrow as pa

        from query.run.run_sql import execute

        with self._workspace.catalog.reading(at) as snapshot:
            if tag not in {column.tag for column in tag_columns(snapshot)}:
                return {}
            with snapshot.with_table(_MARKED, pa.table({"fkey": fkeys})):
                statement = (
                    f'SELECT fkey, CAST(value AS VARCHAR) AS value FROM "t_{tag}" '
                    f"WHERE value IS NOT NULL AND fkey IN (SELECT fkey FROM {_MARKED})"
                )
                table = execute(snapshot, statement)
        return dict(zip(*(table[name].to_pylist() for name in ("fkey", "value")), strict=True))

    def import_scores(self, job: str) -> ScoresBody:
        """Make a validation's scores tags of its model: pipeline.jobs.inference.import_scores."""
        from pipeline.jobs.follow import refresh
        from pipeline.jobs.inference.import_scores import import_scores

        records = self._workspace.records
        validation = refresh(records, recorded_job(records, job))
        return ScoresBody.of(import_scores(self._workspace.whole_catalog, validation))

    def validated_models(self) -> builtins.list[str]:
        """Names of the models that questions may ask for confused classes."""
        with self._workspace.catalog.reading() as snapshot:
            models = scored_models(snapshot).values()
            return [one.model for one in models if f"{one.prefix}_accuracy" in snapshot.tags]

    def _check_files(self, fkeys: Sequence[str]) -> None:
        """Go on only where the catalog has every one of these files."""
        import pyarrow as pa

        from query.run.run_sql import execute

        with (
            self._workspace.catalog.reading() as snapshot,
            snapshot.with_table(_MARKED, pa.table({"fkey": fkeys})),
        ):
            within = f"fkey IN (SELECT fkey FROM {_MARKED})"
            statement = f"SELECT fkey FROM main.{FILES} WHERE {within}"
            known = set(execute(snapshot, statement)["fkey"].to_pylist())
        for fkey in fkeys:
            if fkey not in known:
                raise NotFound("frame", fkey[:200], "no frame has this fkey; nothing was marked")

    def import_map(
        self,
        file: Path,
        family: str,
        within_m: float,
        *,
        tag: str | None = None,
        latitude: str = LATITUDE,
        longitude: str = LONGITUDE,
        is_sent: bool = False,
        stopped: Callable[[], bool] = lambda: False,
    ) -> MapJoinBody:
        """Tag the frames near a map's features: ingest.imports.map_join.import_map."""
        from ingest.imports.map_join import import_map

        result = import_map(
            self._workspace.whole_catalog,
            file,
            family,
            within_m,
            tag=tag,
            latitude=latitude,
            longitude=longitude,
            is_sent=is_sent,
            stopped=stopped,
        )
        return MapJoinBody(**asdict(result))
