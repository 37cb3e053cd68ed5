"""Sources: what can be done with them."""

import builtins
import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, SecretStr

from api.schemas.sources import (
    NewSource,
    SourceAdded,
    SourceBody,
    SourceChange,
    SourceChanged,
    SourceContents,
    SourceRemoved,
    SourceShown,
)
from api.services.call import Service
from catalog.errors import FramesiftError, InvalidInput, NotAllowed, StorageError
from catalog.records.expected_version import ExpectedVersion, to_change
from catalog.records.sources import add_source, recorded_source, recorded_sources
from ingest.sources.recorded import data_set_of
from ingest.sources.source_options import SourceOptions

if TYPE_CHECKING:  # imported where it is used: short commands do without
    from api.services.sources.places import Nameable
    from catalog.records.tables import Source
    from ingest.layouts.recognise import Recognition


class Sources(Service):
    """Sources of a home."""

    def list(
        self,
        *,
        platform: str | None = None,
        cluster: str | None = None,
        datasource: str | None = None,
    ) -> list[SourceBody]:
        """Every source."""
        return [
            SourceBody.of(source)
            for source in recorded_sources(self._workspace.readable_records)
            if platform in (None, source.platform)
            and cluster in (None, source.cluster)
            and datasource in (None, source.datasource)
        ]

    def get(self, name: str) -> SourceShown:
        """A source, with its layout's document."""
        return SourceShown.with_layout(recorded_source(self._workspace.readable_records, name))

    def add(self, name: str, uri: str, **more: Any) -> SourceAdded:
        """Add a source that can be opened; where no layout is given, look which its names tell."""
        request = NewSource(name=name, uri=uri, **more)
        if not self._session.is_command:
            check_text(request)
            self._check_mount(request.mount)
        location = self.reach(uri, options_of(request))
        notes: builtins.list[str] = []
        if not request.layout:
            request, notes = self._with_layout(request, *location)
        body = SourceAdded.with_notes(self.keep(request, *location), notes)
        if self._session.is_command:
            _ = self._workspace.whole_catalog  # a home is made whole
        return body

    def _with_layout(
        self, body: NewSource, uri: str, options: SourceOptions
    ) -> tuple[NewSource, builtins.list[str]]:
        """The source with the layout that its names tell, where one does, and what they tell."""
        recognition = self._look(uri, options)
        if recognition is None or not recognition.names:
            return body, []
        recognised_layout = recognition.layout
        if (
            recognised_layout is not None
            and not recognition.own
            and not recognised_layout.lacks_classes
        ):
            body = body.model_copy(update={"layout": dict(recognised_layout.document)})
        return body, [*filter(None, (recognition.summary(body.name), recognition.draft))]

    def look(self, body: NewSource) -> "Recognition | None":
        """The layouts that the names at a place tell, which is not added; None as of `_look`."""
        check_text(body)
        return self._look(*self.reach(body.uri, options_of(body)))

    def _look(self, uri: str, options: SourceOptions) -> "Recognition | None":
        """The layouts that names at a place tell; None where it cannot be listed now."""
        from ingest.scan.source_layout import looked_at

        self.check_opens(uri, options)
        return looked_at(uri, options)

    def layouts(self) -> builtins.list[tuple[str, str]]:
        """Name and title of each layout that a source can be given by its name."""
        from ingest.layouts.read_layout import presets

        return [(name, layout.title) for name, layout in presets()]

    def nameable(self) -> "Nameable":
        """The places that the caller may name as a source's."""
        from api.services.sources.places import nameable

        return nameable(self._workspace.settings, self._session.caller)

    def reach(self, uri: str, options: SourceOptions) -> tuple[str, SourceOptions]:
        """Where a source that the caller names lies, and the options that keep it there.

        Args:
            uri: Where the files lie.
            options: How they are reached.
        """
        from api.services.sources.places import allowed_place, fenced

        if self._session.is_command:
            return uri if "://" in uri else str(Path(uri).expanduser().absolute()), options
        settings = self._workspace.settings
        allowed = allowed_place(settings, uri, options, self._session.caller)
        return allowed, fenced(settings, allowed, options, self._session.caller)

    def _check_mount(self, mount: str | None) -> None:
        """Let admins alone name a folder of this server that jobs read.

        Raises:
            NotAllowed: The caller is none.
        """
        if mount and not self._session.caller.may("admin"):
            raise NotAllowed("mount: names a folder of this server; admins may")

    def keep(self, body: NewSource, uri: str, options: SourceOptions) -> "Source":
        """Keep a source that can be opened, wherever it lies; its record."""
        from catalog.records.tables import Source

        self.check_opens(uri, options)
        return add_source(
            self._workspace.records,
            Source(
                name=body.name,
                uri=uri,
                platform=body.platform,
                cluster=body.cluster,
                datasource=body.datasource or body.name,
                site=body.site,
                layout=dict(_layout_document(body.layout)) or None,
                options=options.to_json(),
            ),
        )

    def check_opens(self, uri: str, options: SourceOptions) -> None:
        """Open a source that is to be added or changed.

        Raises:
            InvalidInput: It cannot be opened: the caller must name another, or mend what is there.
        """
        from ingest.sources.schemes import open_source

        try:
            open_source(uri, options, self._workspace.indexes)
        except StorageError as error:
            raise InvalidInput(str(error)) from error

    def change(
        self,
        name: str,
        *,
        uri: str | None = None,
        differing: bool = False,
        exclude: Sequence[str] | None = None,
        part_of: str | None = None,
        layout: str | Mapping[str, Any] | None = None,
        mount: str | None = None,
        max_mb_per_s: float | None = None,
        max_requests_per_s: float | None = None,
        expected: ExpectedVersion | None = None,
    ) -> SourceChanged:
        """Change a source; what is None stays."""
        body = SourceChange(
            uri=uri,
            differing=differing,
            exclude=None if exclude is None else [*exclude],
            part_of=part_of,
            layout=layout if layout is None or isinstance(layout, str) else dict(layout),
            mount=mount,
            max_mb_per_s=max_mb_per_s,
            max_requests_per_s=max_requests_per_s,
        )
        if not self._session.is_command:
            check_text(body)
            self._check_mount(body.mount)
        records = self._workspace.records
        source = to_change("source", name, expected, lambda: recorded_source(records, name))
        location = None
        if uri is not None:
            options = dataclasses.replace(SourceOptions.from_json(source.options), within="")
            location = self.reach(uri, options)
        return self._change(source, body, location, expected)

    def _change(
        self,
        source: "Source",
        body: SourceChange,
        location: tuple[str, SourceOptions] | None,
        expected: ExpectedVersion | None,
    ) -> SourceChanged:
        from ingest.scan.change_source import OptionChange, change_options
        from ingest.scan.move_source import move_source

        name = source.name
        names = [field.name for field in dataclasses.fields(OptionChange)]
        fields = {field: body[field] for field in names}
        if body.layout is not None:
            fields["layout"] = _layout_document(body.layout)
        change = OptionChange(**fields)
        if location is None and body.differing:
            raise InvalidInput("differing: goes with where the files lie now, which was not given")
        if location is None and change == OptionChange():
            raise InvalidInput(
                f"source {name}: nothing to change; expected where its files lie now, exclude, "
                "part_of, layout, mount, max_mb_per_s or max_requests_per_s"
            )
        options = SourceOptions.from_json(source.options)
        change.changed(name, options)  # refused before anything is changed
        compared: dict[str, Any] = dict.fromkeys(("same", "changed", "missing", "new"))
        catalog, records = self._workspace.whole_catalog, self._workspace.records
        if location is not None:
            uri, options = location
            moved = move_source(
                catalog, records, name, uri, options,
                index_folder=self._workspace.indexes, differing=body.differing,
                change=change, expected=expected,
            )  # fmt: skip
            compared = {count: getattr(moved, count) for count in compared}
        else:
            change_options(catalog, records, name, change, expected=expected)
        changed = recorded_source(records, name)
        options = SourceOptions.from_json(changed.options)
        return SourceChanged(
            name=name,
            uri=changed.uri,
            exclude=list(options.exclude),
            part_of=data_set_of(changed),
            layout=(changed.layout or {}).get("name", ""),
            mount=options.mount,
            max_mb_per_s=options.max_mb_per_s,
            max_requests_per_s=options.max_requests_per_s,
            **compared,
        )

    def contents(self, name: str) -> SourceContents:
        """Counts of what hangs on a source: files, frames, tags that people gave, and datasets."""
        from catalog.frames.frames import source_contents
        from ingest.scan.change_source import names_of

        source = recorded_source(self._workspace.records, name)
        with self._workspace.catalog.reading() as cursor:
            files, frames, tags = source_contents(cursor, names_of(source))
        return SourceContents(
            name=name, files=files, frames=frames, tags=tags, datasets=self._datasets_of(name)
        )

    def _datasets_of(self, name: str) -> builtins.list[str]:
        from catalog.records.datasets import recorded_datasets
        from pipeline.manifest_store import open_manifest

        records, datasets = self._workspace.records, []
        for dataset in recorded_datasets(records):
            with suppress(FramesiftError):  # a manifest that is gone needs no files
                if name in open_manifest(records, dataset).header.roots:
                    datasets.append(f"{dataset.name}@{dataset.version}")
        return datasets

    def remove(self, name: str, *, expected: ExpectedVersion | None = None) -> SourceRemoved:
        """Remove a source and its files' rows: ingest.scan.change_source.remove_source."""
        from ingest.scan.change_source import remove_source

        files = remove_source(
            self._workspace.whole_catalog, self._workspace.records, name, expected
        )
        return SourceRemoved(name=name, files_removed=files)


def _layout_document(layout: str | Mapping[str, Any]) -> Mapping[str, Any]:
    """The document of a layout that is given by name or as a document; empty for none."""
    if not layout:
        return {}
    from ingest.layouts.read_layout import layout_of, preset

    if isinstance(layout, str):
        return preset(layout).document
    return layout_of({"name": "own", **layout}, "layout").document


def options_of(body: NewSource, sealed: str = "") -> SourceOptions:
    """The options by which the source is reached.

    Args:
        sealed: Keys that the source has, which stay where no others are sent.

    Raises:
        InvalidInput: Options contradict each other, or keys cannot be encrypted here.
    """
    from ingest.sources.mount import Mount
    from ingest.sources.sealed_keys import AccessKeys, seal

    secret = body.secret_key.get_secret_value()
    if bool(body.access_key) != bool(secret):
        raise InvalidInput("access_key and secret_key: give both, or neither")
    if secret:
        sealed = seal(AccessKeys(body.access_key, secret))
    elif body.profile or body.anonymous:
        sealed = ""
    return SourceOptions(
        endpoint_url=body.endpoint_url,
        anonymous=body.anonymous,
        profile=body.profile,
        region=body.region,
        ca_bundle=body.ca_bundle,
        verify_tls=body.verify_tls,
        sealed_keys=sealed,
        exclude=tuple(body.exclude),
        part_of="" if body.part_of == body.name else body.part_of,
        mount=body.mount and str(Mount.parse(body.mount)),
        max_mb_per_s=body.max_mb_per_s,
        max_requests_per_s=body.max_requests_per_s,
    )


def check_text(body: BaseModel) -> None:
    """Refuse what a database or a file system holds no name of.

    Raises:
        InvalidInput: A text has characters that cannot be printed.
    """
    for field, content in body.model_dump().items():
        value = content.get_secret_value() if isinstance(content, SecretStr) else content
        if isinstance(value, str) and not value.isprintable():
            raise InvalidInput(f"{field}: holds characters that cannot be printed")
