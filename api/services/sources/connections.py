"""Sources as Spectrum Discover's connections: shown with their state, and replaced as a whole."""

import dataclasses
from collections.abc import Mapping

from sqlalchemy import select

from api.schemas.sources import ConnectionBody, NewConnection, SourceBody
from api.services.call import Service
from api.services.sources.service import Sources, check_text, options_of
from catalog.errors import AlreadyExists, InvalidInput
from catalog.records.scans import recorded_scans
from catalog.records.sources import recorded_source, recorded_sources
from catalog.records.tables import Source
from ingest.scan.scan_lock import scan_lock
from ingest.scan.scan_record import SCAN
from ingest.sources.schemes import scheme_of
from ingest.sources.source_options import SourceOptions

_NAMED_BY = ("platform", "cluster", "datasource")
"""Columns that together name a connection's rows in the catalog."""


class Connections(Service):
    """Sources of a home, as connections."""

    @property
    def _sources(self) -> Sources:
        """They decide what places may be named."""
        return Sources(self._session)

    def list(self) -> list[ConnectionBody]:
        """Every source by name, as it stands."""
        counts = self._counts()
        return [self._body(source, counts) for source in recorded_sources(self._workspace.records)]

    def get(self, name: str) -> ConnectionBody:
        """A source as it stands."""
        return self._body(recorded_source(self._workspace.records, name), self._counts())

    def add(self, connection: NewConnection) -> SourceBody:
        """Add a source that can be opened: api.services.sources.service.Sources.add."""
        return SourceBody.of(self._sources.keep(connection, *self._place(connection)))

    def replace(self, name: str, connection: NewConnection) -> SourceBody:
        """Have a source be another; it keeps its keys where no others are sent.

        Args:
            connection: All of it. What rows are named by changes only while there are none.

        Raises:
            InvalidInput: Nothing can be opened by it, or files of it are catalogued by its names.
        """
        source = recorded_source(self._workspace.records, name)
        until_now = SourceOptions.from_json(source.options)
        uri, options = self._place(connection, until_now.sealed_keys)
        # Its clients know of no mount and no limits: they stay.
        options = dataclasses.replace(
            options,
            mount=options.mount or until_now.mount,
            max_mb_per_s=options.max_mb_per_s or until_now.max_mb_per_s,
            max_requests_per_s=options.max_requests_per_s or until_now.max_requests_per_s,
        )
        self._sources.check_opens(uri, options)
        columns = {
            "name": connection.name,
            "uri": uri,
            "platform": connection.platform,
            "cluster": connection.cluster,
            "datasource": connection.datasource,
            "site": connection.site,
            "options": options.to_json(),
        }
        with scan_lock(self._workspace.whole_catalog, source):
            files = self._counts().get((source.cluster, source.datasource), 0)
            if files and any(columns[column] != getattr(source, column) for column in _NAMED_BY):
                raise InvalidInput(
                    f"connection '{name}' has {files:,} catalogued files, which are named by its "
                    f"{', '.join(_NAMED_BY)}: delete it and add it again"
                )
            return SourceBody.of(self._keep(source, columns))

    def _place(self, connection: NewConnection, sealed: str = "") -> tuple[str, SourceOptions]:
        """Where its files are, which may be named, and how they are reached."""
        check_text(connection)
        options = options_of(connection, sealed)
        options = dataclasses.replace(options, host=connection.host, user=connection.user)
        return self._sources.reach(connection.uri, options)

    def _keep(self, source: Source, columns: Mapping[str, object]) -> Source:
        with self._workspace.records.session() as session:
            for other in session.scalars(select(Source).where(Source.id != source.id)).all():
                if other.name == columns["name"]:
                    raise AlreadyExists("connection", other.name, "choose another name")
                if (other.cluster, other.datasource) == (columns["cluster"], columns["datasource"]):
                    raise AlreadyExists("datasource", other.datasource, f"{other.name} has it")
            recorded = session.get_one(Source, source.id)
            for column, value in columns.items():
                setattr(recorded, column, value)
            return recorded

    def _counts(self) -> dict[tuple[str, str], int]:
        """Catalogued files of each cluster and datasource."""
        with self._workspace.catalog.reading() as cursor:
            rows = cursor.execute(
                "SELECT cluster, datasource, count(*) FROM main.files GROUP BY ALL"
            ).fetchall()
        return {(cluster, datasource): count for cluster, datasource, count in rows}

    def _body(self, source: Source, counts: dict[tuple[str, str], int]) -> ConnectionBody:
        return ConnectionBody(
            **SourceBody.of(source).model_dump(),
            is_local=scheme_of(source.uri).is_local,
            online=self._is_online(source),
            files=counts.get((source.cluster, source.datasource), 0),
        )

    def _is_online(self, source: Source) -> bool:
        """Return whether the last scan found it: asking now might wait for a mount that is gone."""
        scans = recorded_scans(self._workspace.records, source=source.name, kind=SCAN, limit=1)
        return not any(scan.state == "failed" for scan, _ in scans)
