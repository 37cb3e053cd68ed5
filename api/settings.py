"""Settings, read once from the environment; everything below api/ gets arguments."""

import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

from catalog.errors import InvalidInput
from ingest.sources.schemes import SCHEMES

if TYPE_CHECKING:
    from pydantic import BaseModel

_PREFIX = "framesift_"


@dataclass(frozen=True)
class Secret:
    """A text that nothing shows that prints a setting."""

    text: str = field(repr=False)

    def __bool__(self) -> bool:
        return bool(self.text)


def _secret(value: Any) -> Any:
    return Secret(value) if isinstance(value, str) else value


def _place(value: Any) -> Any:
    # A script's unset variable would otherwise mean the current folder, or another catalog.
    if value == "":
        raise ValueError("empty: name a place, or unset the variable")
    return value


def _secret_place(value: Any) -> Any:
    return _secret(_place(value))


def _none_if_empty(value: Any) -> Any:
    return value or None


def _names(value: Any) -> Any:
    """The names between commas."""
    if not isinstance(value, str):
        return value
    return tuple(piece.strip() for piece in value.split(",") if piece.strip())


def _lower_names(value: Any) -> Any:
    return _names(value.lower()) if isinstance(value, str) else value


def _words(value: Any) -> Any:
    return tuple(shlex.split(value)) if isinstance(value, str) else value


def _folders(value: Any) -> Any:
    """The folders between colons."""
    if not isinstance(value, str):
        return value
    return tuple(piece for piece in value.split(os.pathsep) if piece)


@dataclass(frozen=True)
class About:
    """What is known of a setting beside its type and default."""

    description: str
    """Its line in the page of settings."""
    reads: Callable[[Any], Any] | None
    """Makes a value of a text, and leaves other values as they are."""
    limits: dict[str, Any]
    """Limits of its values, as pydantic's Field has them."""


def setting(
    *,
    description: str,
    default: Any = None,
    default_factory: Callable[[], Any] | None = None,
    reads: Callable[[Any], Any] | None = None,
    **limits: Any,
) -> Any:
    """A field of Settings; the arguments are About's."""
    metadata = {"about": About(description, reads, limits)}
    if default_factory is not None:
        return field(default_factory=default_factory, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, init=False)
class Settings:
    """Settings of ``FRAMESIFT_*`` variables; those given by name go before them.

    No model of pydantic's: importing it and making one takes a seventh of a short command, most of
    which have plain texts alone.

    Raises:
        pydantic.ValidationError: A value cannot be used.
    """

    named: frozenset[str] = field(init=False, compare=False)
    """Names of the settings that are no defaults."""

    home: Path = setting(
        default_factory=lambda: Path.home() / ".framesift",
        reads=_place,
        description="Folder of catalog, records, datasets and jobs.",
    )
    cache: Path | None = setting(
        default=None,
        reads=_place,
        description="Folder that datasets are staged into; HOME/cache by default.",
    )
    catalog_metadata: Secret | None = setting(
        default=None,
        reads=_secret_place,
        description="postgresql:// URL of the catalog's metadata, or path of a SQLite file; "
        "HOME/catalog/catalog.sqlite by default.",
    )
    catalog_data: str | None = setting(
        default=None,
        reads=_place,
        description="s3://bucket/prefix or folder of the catalog's Parquet files; "
        "HOME/catalog/data by default.",
    )
    catalog_s3_endpoint: str = setting(
        default="", description="Server that speaks S3 for the catalog's data; AWS by default."
    )
    catalog_s3_profile: str = setting(
        default="", description="Profile of ~/.aws/config with the keys to the catalog's data."
    )
    catalog_s3_region: str = setting(default="", description="Region of the catalog's bucket.")
    catalog_s3_ca_bundle: str = setting(
        default="", description="PEM file of authorities to trust for the catalog's S3 server."
    )
    records: Secret | None = setting(
        default=None,
        reads=_secret_place,
        description="postgresql:// URL of the records, or path of a SQLite file; "
        "HOME/records/records.sqlite by default.",
    )
    secret_key: Secret | None = setting(
        default=None,
        reads=_secret,
        description="Key that keys of sources are encrypted by: 32 bytes in URL-safe base64; "
        "in the file HOME/secret.key by default.",
    )
    job_slots: int = setting(
        default=1, ge=1, description="Trainings and validations that run at once; others wait."
    )
    command_slots: int = setting(
        default=8, ge=1, description="Scans, stagings and other jobs that run at once; others wait."
    )
    job_environment: tuple[str, ...] = setting(
        default=(),
        reads=_names,
        description="Variables that jobs inherit besides those that they need: names with commas "
        "between, in which * stands for any characters.",
    )
    lock_wait_s: float = setting(
        default=60.0, gt=0, description="How long a write waits for another one [s]."
    )
    query_timeout_s: float = setting(
        default=600.0, gt=0, description="How long a query may take [s]."
    )
    query_memory: str = setting(
        default="2GB",
        pattern=r"^\d+(\.\d+)? ?([KMGT]i?B)$",
        description="Memory that a process's queries may take.",
    )
    query_spill: str = setting(
        default="32GB",
        pattern=r"^\d+(\.\d+)? ?([KMGT]i?B)$",
        description="Temporary disk space that a process's queries may take beyond their memory.",
    )
    snapshot_memory_mb: int | None = setting(
        default=None,
        ge=0,
        description="Memory in which a server holds the newest snapshot [MB]; 0 holds none. "
        "A quarter of the machine's by default.",
    )
    compact_files: int = setting(
        default=50,
        ge=0,
        description="Data files that commits may add to one table of the catalog before a server "
        "or a watcher compacts it; 0: neither compacts.",
    )
    query_max_rows: int = setting(
        default=1_000_000, gt=0, description="Rows that one statement may return."
    )
    statements_at_once: int = setting(
        default=32, ge=1, le=256, description="Statements that a server process runs at once."
    )
    statements_waiting: int = setting(
        default=512, ge=0, description="Statements that wait for their turn; more are refused."
    )
    jobs_each: int = setting(
        default=20,
        ge=1,
        description="Jobs that a user limited to collections may have waiting or running.",
    )
    ranks_each: int = setting(
        default=1024,
        ge=1,
        description="Processes that the waiting and running trainings, validations, predictions "
        "and programs of one user may have together.",
    )
    job_workers: int | None = setting(
        default=None,
        ge=1,
        description="Workers that a training or validation on this machine may have; as many as it "
        "has cores, and 2 at least, by default.",
    )
    run_programs: Literal["nobody", "admins", "users"] = setting(
        default="nobody",
        description="Whose programs the server runs as jobs of kind run: nobody's; admins'; or "
        "users' who may write and see every row. They run as the server's own user does.",
    )
    jobs_in_container: bool = setting(
        default=False,
        description="Whether jobs run in containers or pods: without staging they read sources at "
        "the folders that these mount.",
    )
    afm_command: tuple[str, ...] = setting(
        default=("/usr/lpp/mmfs/bin/mmafmctl",),
        reads=_words,
        min_length=1,
        description="mmafmctl, and what leads to it, such as 'ssh root@node "
        "/usr/lpp/mmfs/bin/mmafmctl'.",
    )
    afm_cos_command: tuple[str, ...] = setting(
        default=("/usr/lpp/mmfs/bin/mmafmcosctl",),
        reads=_words,
        min_length=1,
        description="mmafmcosctl, and what leads to it, for targets afmcos:FILESYSTEM/FILESET.",
    )
    afm_gateway: str = setting(
        default="",
        pattern=r"^[A-Za-z0-9_.-]*$",
        description="Gateway node that prefetches run on: local, all, or a node's name; AFM's own "
        "choice where empty.",
    )
    afm_force: bool = setting(
        default=False,
        description="Whether prefetches fetch whatever AFM's own restrictions are (--force).",
    )
    recall_command: tuple[str, ...] = setting(
        default=(),
        reads=_words,
        description="What recalls files from tape by a list, such as 'ssh archi@node sudo "
        "/opt/ibm/ltfsee/bin/eeadm recall'; without it reading a file recalls it.",
    )
    migrate_command: tuple[str, ...] = setting(
        default=(),
        reads=_words,
        description="What migrates files to tape by a list, such as 'ssh archi@node sudo "
        "/opt/ibm/ltfsee/bin/eeadm migrate {list} -p pool1': a job's last step with --migrate.",
    )
    restore_days: int = setting(
        default=7, ge=1, description="How long restored objects of S3 archives stay [days]."
    )
    restore_tier: str = setting(
        default="Standard",
        pattern="^[A-Za-z]+$",
        description="How soon S3 archives restore objects: Standard, Bulk, Expedited; IBM COS "
        "has Accelerated, too.",
    )
    list_folder: Path | None = setting(
        default=None,
        reads=_place,
        description="Folder of the lists of files for storage systems' commands, which the storage "
        "nodes have at the same path; HOME/lists by default.",
    )
    streams_each: int = setting(
        default=100,
        ge=1,
        description="Streams of jobs' events that a server process sends to one user at once.",
    )
    connections: int = setting(
        default=16_384,
        ge=8,
        description="Connections that a server process keeps open; of those that ask nothing the "
        "oldest are closed for new ones.",
    )
    head_timeout_s: float = setting(
        default=10.0, gt=0, description="How long a request's head may take to come [s]."
    )
    body_timeout_s: float = setting(
        default=30.0,
        gt=0,
        description="How long a request's body may take to come [s], and 1 s more for each 4 KiB.",
    )
    write_timeout_s: float = setting(
        default=30.0, gt=0, description="How long a client may read nothing of its answer [s]."
    )
    keep_alive_s: int = setting(
        default=15, gt=0, description="How long a connection may wait for its next request [s]."
    )
    worker_timeout_s: float = setting(
        default=30.0,
        ge=2,
        description="How long one of several server processes may stand still before it is "
        "replaced [s].",
    )
    max_body_mb: int = setting(default=1, ge=1, description="What a request's body may have [MiB].")
    max_map_mb: int = setting(
        default=16, ge=1, description="What a request with a map may have [MiB]."
    )
    max_file_mb: int = setting(
        default=1024, ge=1, description="What a request with a file of tag values may have [MiB]."
    )
    source_schemes: tuple[str, ...] = setting(
        default=tuple(SCHEMES),
        reads=_lower_names,
        description="Schemes of sources that may be added over REST, with commas between.",
    )
    source_hosts: tuple[str, ...] = setting(
        default=(),
        reads=_lower_names,
        description="Hosts (or host:port) of S3 servers inside the server's own network that "
        "sources added over REST may name, also by http, with commas between; public ones may be "
        "named by https anyway.",
    )
    webhook_hosts: tuple[str, ...] = setting(
        default=(),
        reads=_lower_names,
        description="Hosts (or host:port) that webhooks may name, by https or http, with commas "
        "between; none by default.",
    )
    source_roots: tuple[Path, ...] = setting(
        default=(),
        reads=_folders,
        description="Folders below which sources added over REST may lie, with colons between; "
        "admins may name any.",
    )

    trusted_proxies: tuple[str, ...] = setting(
        default=(),
        reads=_names,
        description="Addresses or networks of proxies whose X-Forwarded-For and X-Forwarded-Proto "
        "are believed, with commas between; of nobody by default.",
    )

    trusted_user_header: str = setting(
        default="",
        description="Header by which a proxy of FRAMESIFT_TRUSTED_PROXIES names the user who opens "
        "pages; empty: none.",
    )

    oidc_issuer: str = setting(
        default="",
        description="URL of the OpenID provider by which users log in, as its discovery document "
        "has it; empty: none.",
    )
    oidc_client_id: str = setting(default="", description="What the provider calls this server.")
    oidc_client_secret: Secret | None = setting(
        default=None, reads=_secret, description="The client's secret; a public client has none."
    )
    oidc_client_secret_file: Path | None = setting(
        default=None, description="File with the client's secret, in place of the variable."
    )
    oidc_groups: Path | None = setting(
        default=None, description="TOML file that says which roles and collections groups have."
    )
    oidc_groups_claim: str = setting(
        default="groups", description="Claim that has the names of a user's groups."
    )
    oidc_name_claim: str = setting(
        default="preferred_username", description="Claim that has the name of a new user."
    )
    oidc_scopes: str = setting(
        default="openid profile", description="Scopes that a login asks for, with blanks between."
    )
    oidc_audience: str = setting(
        default="",
        description="Audience (aud) of access tokens of the provider that programs may send; "
        "empty: none are taken.",
    )
    oidc_title: str = setting(
        default="", description="The provider's name on the login page; its host by default."
    )
    oidc_ca_bundle: Path | None = setting(
        default=None,
        description="PEM file of authorities to trust for the provider, beside the system's.",
    )

    mcp: bool | None = setting(
        default=None,
        description="Whether assistants may ask at /mcp; by default where the extra mcp is there.",
    )

    server: str | None = setting(
        default=None,
        reads=_none_if_empty,
        description="URL of a server that commands ask, in place of a home.",
    )
    token: Secret | None = setting(
        default=None, reads=_secret, description="A token for that server."
    )
    server_ca_bundle: Path | None = setting(
        default=None, description="PEM file of authorities to trust for that server."
    )
    config: Path = setting(
        default_factory=lambda: Path.home() / ".config" / "framesift",
        reads=_place,
        description="Folder where 'framesift login' keeps tokens.",
    )

    def __init__(self, **given: Any) -> None:
        values = _taken(_of_environment() | given)
        object.__setattr__(self, "named", frozenset(values))
        for name in SETTINGS:
            value = values[name] if name in values else default_of(name)
            object.__setattr__(self, name, value)


SETTINGS = MappingProxyType({one.name: one for one in fields(Settings) if "about" in one.metadata})
"""Every setting, by its name; its metadata has `about`."""


def default_of(name: str) -> Any:
    """The default of a setting."""
    default, factory = SETTINGS[name].default, SETTINGS[name].default_factory
    return factory() if callable(factory) else default


_TEXTS: dict[Any, Callable[[str], Any]] = {
    Path: Path,
    Path | None: Path,
    str: str,
    str | None: str,
    Secret | None: Secret,
}
"""Types of settings for which every text but the empty one is a value, and what makes it."""


def _of_environment() -> dict[str, Any]:
    """Texts of the variables that are set, by their settings."""
    names = {name.lower(): text for name, text in os.environ.items()}
    return {name: names[_PREFIX + name] for name in SETTINGS if _PREFIX + name in names}


def _taken(values: dict[str, Any]) -> dict[str, Any]:
    """The values of the settings' types."""
    if all(isinstance(value, str) and _is_plain(name, value) for name, value in values.items()):
        return {name: _TEXTS[SETTINGS[name].type](text) for name, text in values.items()}
    checked = _model()(**values)
    return {name: getattr(checked, name) for name in values}


def _is_plain(name: str, text: str) -> bool:
    if name not in SETTINGS or not text:
        return False
    return SETTINGS[name].type in _TEXTS and not SETTINGS[name].metadata["about"].limits


@cache
def _model() -> "type[BaseModel]":
    """The model that checks values which are no plain texts."""
    from pydantic import BeforeValidator, ConfigDict, Field, create_model

    def checks(about: About) -> tuple[Any, ...]:
        return (Field(**about.limits), *([BeforeValidator(about.reads)] if about.reads else []))

    members: dict[str, Any] = {
        name: (Annotated[one.type, *checks(one.metadata["about"])], None)
        for name, one in SETTINGS.items()
    }
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    model: type[BaseModel] = create_model("Settings", __config__=config, **members)
    return model


def read_settings() -> Settings:
    """The settings of this process.

    Raises:
        InvalidInput: A variable's value cannot be used; the message names it.
    """
    try:
        return Settings()
    except ValueError as error:
        from pydantic import ValidationError

        if not isinstance(error, ValidationError):
            raise
        fault = error.errors()[0]
        name = _PREFIX.upper() + "_".join(str(key) for key in fault["loc"]).upper()
        reason = fault["msg"].removeprefix("Value error, ")
        raise InvalidInput(f"{name}={fault['input']}: {reason}") from error
