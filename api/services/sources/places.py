"""Checks the places that may be named over REST as a source's, and keeps sources at them."""

import dataclasses
import socket
from pathlib import Path
from urllib.parse import urlsplit

from api.services.accounts.callers import Caller
from api.settings import Settings
from catalog.errors import InvalidInput, NotAllowed
from catalog.text.visible_text import without_user
from ingest.sources.endpoint_proxy import ENDPOINT, PUBLIC
from ingest.sources.local_folder import path_of
from ingest.sources.public_address import is_public
from ingest.sources.schemes import PLACES, SCHEMES, scheme_of
from ingest.sources.source_options import SourceOptions


@dataclasses.dataclass(frozen=True)
class Nameable:
    """The places that a caller may name as a source's; `allowed_place` holds them to it."""

    any_folder: bool
    """Whether every folder of the server may be; else those below `roots`."""
    roots: tuple[Path, ...]
    """Folders below which a folder may lie."""
    buckets: bool
    """Whether buckets of S3 servers may be."""
    hosts: tuple[str, ...]
    """S3 servers inside the server's own network that may be; public ones may, by https."""

    @property
    def folders(self) -> bool:
        """Whether some folder may be."""
        return self.any_folder or bool(self.roots)


def nameable(settings: Settings, caller: Caller) -> Nameable:
    """The places that a caller may name over REST and on the page."""
    local = any(SCHEMES[scheme].is_local for scheme in _known(settings))
    return Nameable(
        any_folder=local and caller.may("admin"),
        roots=settings.source_roots if local else (),
        buckets=any(not SCHEMES[scheme].is_local for scheme in _known(settings)),
        hosts=settings.source_hosts,
    )


def _known(settings: Settings) -> list[str]:
    return [scheme for scheme in settings.source_schemes if scheme in SCHEMES]


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
    word, colon, _ = uri.partition(":")
    scheme = word.lower() if colon and "/" not in word else "file"
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
        addresses = socket.getaddrinfo(host, port or 443, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise InvalidInput(f"endpoint {endpoint}: host {host} is not known here") from error
    for *_, address in addresses:
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
    except ValueError:  # it may show what stands before an "@"
        host, port = "", None
    if not host:
        raise InvalidInput(f"endpoint {without_user(endpoint)}: expected https://host[:port]")
    return host, port
