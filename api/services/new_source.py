"""Adding a source: what the route does, and which places may be named over REST."""

import dataclasses
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, SecretStr

from api.schemas.wanted_source import NewSource, SourceChange
from api.services.callers import Caller
from api.settings import Settings
from api.workspace import Workspace
from catalog.errors import InvalidInput, NotAllowed, StorageError
from catalog.records.tables import Source
from ingest.scan.change_source import change_options, changed_options
from ingest.scan.move_source import move_source
from ingest.sources.endpoint_proxy import ENDPOINT, PUBLIC
from ingest.sources.local_folder import path_of
from ingest.sources.public_address import is_public
from ingest.sources.recorded import data_set_of
from ingest.sources.schemes import PLACES, SCHEMES, open_source, scheme_of
from ingest.sources.sealed_keys import AccessKeys, seal
from ingest.sources.source_options import SourceOptions


def add_source(workspace: Workspace, wanted: NewSource, caller: Caller | None) -> Source:
    """Keep a source at a place that may be named over REST; its record.

    Raises:
        NotAllowed: This server does not let that place be named by who asks.
        InvalidInput: The URI or an option cannot be used, or nothing can be opened by them.
        AlreadyExists: The name, or its cluster and datasource, are taken.
    """
    check_text(wanted)
    options = options_of(wanted)
    uri = allowed_place(workspace.settings, wanted.uri, options, caller)
    return keep_source(workspace, wanted, uri, fenced(workspace.settings, uri, options, caller))


def keep_source(
    workspace: Workspace, wanted: NewSource, uri: str, options: SourceOptions
) -> Source:
    """Keep a source that can be opened, wherever it is; its record.

    Raises:
        InvalidInput: The URI or an option cannot be used, or nothing can be opened by them.
        AlreadyExists: The name, or its cluster and datasource, are taken.
    """
    check_opens(workspace, uri, options)
    return workspace.records.add_source(
        Source(
            name=wanted.name,
            uri=uri,
            platform=wanted.platform,
            cluster=wanted.cluster,
            datasource=wanted.datasource or wanted.name,
            site=wanted.site,
            options=options.to_json(),
        )
    )


def change_source(
    workspace: Workspace, name: str, wanted: SourceChange, caller: Caller | None
) -> dict[str, Any]:
    """Change a source; one that was moved lies at a place that may be named over REST.

    Returns:
        What a server's SourceChanged holds.

    Raises:
        NotFound: There is no such source.
        NotAllowed: This server does not let that place be named by who asks.
        InvalidInput: Nothing is to be changed, a pattern cannot be used, or what lies at the place
            cannot be opened, or is not what is catalogued.
        CatalogBusy: The source is being scanned.
    """
    check_text(wanted)
    place = None
    if wanted.uri is not None:
        options = SourceOptions.from_json(workspace.records.source(name).options)
        uri = allowed_place(workspace.settings, wanted.uri, options, caller)
        anywhere = dataclasses.replace(options, within="")
        place = uri, fenced(workspace.settings, uri, anywhere, caller)
    return keep_change(workspace, name, wanted, place)


def keep_change(
    workspace: Workspace,
    name: str,
    wanted: SourceChange,
    place: tuple[str, SourceOptions] | None,
) -> dict[str, Any]:
    """`change_source`; at the ``place``, where one is given, wherever it is."""
    source = workspace.records.source(name)
    changes = wanted.exclude is not None or wanted.part_of is not None
    if place is None and wanted.differing:
        raise InvalidInput("differing: goes with where the files lie now, which was not given")
    if place is None and not changes:
        raise InvalidInput(
            f"source {name}: nothing to change; expected where its files lie now, exclude or "
            "part_of"
        )
    changed_options(source, wanted.exclude, wanted.part_of)  # before anything is changed
    compared: dict[str, Any] = dict.fromkeys(("same", "changed", "missing", "new"))
    catalog, records = workspace.catalog, workspace.records
    if place is not None:
        # With the patterns of before: what they left out is not catalogued.
        uri, options = place
        moved = move_source(
            catalog, records, name, uri, options,
            index_folder=workspace.indexes, differing=wanted.differing,
        )  # fmt: skip
        compared = {count: getattr(moved, count) for count in compared}
    if changes:
        change_options(catalog, records, name, exclude=wanted.exclude, part_of=wanted.part_of)
    kept = workspace.records.source(name)
    exclude = list(SourceOptions.from_json(kept.options).exclude)
    about = {"name": name, "uri": kept.uri, "exclude": exclude, "part_of": data_set_of(kept)}
    return about | compared


def check_opens(workspace: Workspace, uri: str, options: SourceOptions) -> None:
    """Open a source that is to be added or changed.

    Raises:
        InvalidInput: It cannot be opened: who names it must name another, or mend what is there.
    """
    try:
        open_source(uri, options, workspace.indexes)
    except StorageError as error:
        raise InvalidInput(str(error)) from error


def options_of(wanted: NewSource, sealed: str = "") -> SourceOptions:
    """How the source is reached.

    Args:
        wanted: What was sent.
        sealed: Keys that the source has, which stay where no others are sent.

    Raises:
        InvalidInput: Options contradict each other, or keys cannot be encrypted here.
        StorageError: The key to encrypt them by cannot be kept.
    """
    secret = wanted.secret_key.get_secret_value()
    if bool(wanted.access_key) != bool(secret):
        raise InvalidInput("access_key and secret_key: give both, or neither")
    if secret:
        sealed = seal(AccessKeys(wanted.access_key, secret))
    elif wanted.profile or wanted.anonymous:
        sealed = ""
    return SourceOptions(
        endpoint_url=wanted.endpoint_url,
        anonymous=wanted.anonymous,
        profile=wanted.profile,
        region=wanted.region,
        ca_bundle=wanted.ca_bundle,
        verify_tls=wanted.verify_tls,
        sealed_keys=sealed,
        exclude=tuple(wanted.exclude),
        part_of="" if wanted.part_of == wanted.name else wanted.part_of,
    )


def allowed_place(
    settings: Settings, uri: str, options: SourceOptions, caller: Caller | None
) -> str:
    """The place to open, where it may be named over REST: a server's URI or an absolute path.

    Listed schemes only, for everybody. A folder must lie below one of ``source_roots``, links
    followed, where who asks is no admin. An S3 server must be listed in ``source_hosts``, or speak
    https and have no address but public ones: whoever names it makes this server talk to it.

    Raises:
        NotAllowed: It may not.
        InvalidInput: It is no URI, a path that is not absolute, or a host that is not known.
    """
    given, colon, _ = uri.partition(":")
    scheme = given.lower() if colon and "/" not in given else "file"
    if scheme not in settings.source_schemes:
        raise NotAllowed(
            f"scheme {scheme}: this server takes {', '.join(settings.source_schemes)} "
            "(FRAMESIFT_SOURCE_SCHEMES)"
        )
    is_admin = caller is not None and caller.may("admin")
    if options.ca_bundle and not is_admin:
        raise NotAllowed("ca_bundle: names a file of this server; admins may")
    kind = SCHEMES.get(scheme)
    if kind is None:  # an admin of the server lists a scheme that is none
        raise InvalidInput(f"uri {uri}: expected {PLACES}")
    if kind.is_local:
        path = Path(path_of(uri))
        _check_folder(settings, path, is_admin=is_admin)
        return str(path)
    if not uri.lower().startswith(f"{scheme}://"):  # it would be opened as a path
        raise InvalidInput(f"uri {uri}: expected {kind.example}")
    if options.endpoint_url:
        _check_host(settings, options.endpoint_url)
    return uri


def fenced(
    settings: Settings, uri: str, options: SourceOptions, caller: Caller | None
) -> SourceOptions:
    """The options of a source at an allowed place, which keep it at what allows it.

    A folder stays below its root: whoever may write into the folders on its way could have links
    lead elsewhere later. An S3 server is reached at its own host and port, and at public addresses
    where it is not listed: it could redirect, and its name could stand for another address later.

    Raises:
        NotAllowed: It lies below none by now.
    """
    if not scheme_of(uri).is_local:
        if not options.endpoint_url:
            return dataclasses.replace(options, reach="")
        listed = _is_listed(settings, *_host_and_port(options.endpoint_url))
        return dataclasses.replace(options, reach=ENDPOINT if listed else PUBLIC)
    if caller is not None and caller.may("admin"):
        return options
    root = _root_of(settings, Path(uri))
    if root is None:  # a link on its way was changed since the place was allowed
        raise NotAllowed(
            f"uri {uri}: lies below none of the folders that this server lets be named"
        )
    return dataclasses.replace(options, within=str(root))


def _root_of(settings: Settings, path: Path) -> Path | None:
    """The folder of ``source_roots`` below which a path lies, links followed."""
    real = path.resolve()
    roots = (root.expanduser().resolve() for root in settings.source_roots)
    return next((root for root in roots if real.is_relative_to(root)), None)


def _check_folder(settings: Settings, path: Path, *, is_admin: bool) -> None:
    if not path.is_absolute():
        raise InvalidInput(f"uri {path}: expected an absolute path of the server")
    if is_admin:
        return
    if _root_of(settings, path) is None:
        raise NotAllowed(
            f"uri {path}: lies below none of the folders that this server lets be named "
            "(FRAMESIFT_SOURCE_ROOTS); an admin may name any"
        )


def _check_host(settings: Settings, endpoint: str) -> None:
    host, port = _host_and_port(endpoint)
    if _is_listed(settings, host, port):
        return
    try:
        found = socket.getaddrinfo(host, port or 443, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise InvalidInput(f"endpoint {endpoint}: host {host} is not known here") from error
    for *_, address in found:
        if not is_public(str(address[0])):
            raise NotAllowed(
                f"endpoint {endpoint}: is an address inside this server's own network; an admin "
                "of the server may list the host in FRAMESIFT_SOURCE_HOSTS"
            )
    if not endpoint.lower().startswith("https://"):
        raise NotAllowed(
            f"endpoint {endpoint}: expected https://; an admin of the server may list the host in "
            "FRAMESIFT_SOURCE_HOSTS"
        )


def _is_listed(settings: Settings, host: str, port: int | None) -> bool:
    return host in settings.source_hosts or f"{host}:{port}" in settings.source_hosts


def _host_and_port(endpoint: str) -> tuple[str, int | None]:
    try:
        parts = urlsplit(endpoint)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError as error:
        raise InvalidInput(f"endpoint {endpoint}: {error}; expected https://host[:port]") from error
    if not host:
        raise InvalidInput(f"endpoint {endpoint}: expected https://host[:port]")
    return host, port


def check_text(wanted: BaseModel) -> None:
    """Refuse what a database or a file system holds no name of.

    Raises:
        InvalidInput: A text has characters that cannot be printed.
    """
    for field, given in wanted.model_dump().items():
        value = given.get_secret_value() if isinstance(given, SecretStr) else given
        if isinstance(value, str) and not value.isprintable():
            raise InvalidInput(f"{field}: holds characters that cannot be printed")
