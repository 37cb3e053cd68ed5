"""Settings, read once from the environment; everything below api/ gets arguments."""

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo

from catalog.errors import InvalidInput
from ingest.sources.schemes import SCHEMES

_PREFIX = "framesift_"


class Settings(BaseModel):
    """Settings of ``FRAMESIFT_*`` variables; those given by name go before them.

    pydantic-settings would do the same, and takes a tenth of a short command to import.
    """

    # Built when first validated: a fifth of a short command, which read_settings does without.
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, defer_build=True)

    home: Path = Field(
        default_factory=lambda: Path.home() / ".framesift",
        description="Folder of catalog, records, datasets and jobs.",
    )
    cache: Path | None = Field(
        default=None, description="Folder that datasets are staged into; HOME/cache by default."
    )
    catalog_metadata: SecretStr | None = Field(
        default=None,
        description="postgresql:// URL of the catalog's metadata, or path of a SQLite file; "
        "HOME/catalog/catalog.sqlite by default.",
    )
    catalog_data: str | None = Field(
        default=None,
        description="s3://bucket/prefix or folder of the catalog's Parquet files; "
        "HOME/catalog/data by default.",
    )
    catalog_s3_endpoint: str = Field(
        default="", description="Server that speaks S3 for the catalog's data; AWS by default."
    )
    catalog_s3_profile: str = Field(
        default="", description="Profile of ~/.aws/config with the keys to the catalog's data."
    )
    catalog_s3_region: str = Field(default="", description="Region of the catalog's bucket.")
    catalog_s3_ca_bundle: str = Field(
        default="", description="PEM file of authorities to trust for the catalog's S3 server."
    )
    records: SecretStr | None = Field(
        default=None,
        description="postgresql:// URL of the records, or path of a SQLite file; "
        "HOME/records/records.sqlite by default.",
    )
    secret_key: SecretStr | None = Field(
        default=None,
        description="Key that keys of sources are encrypted by: 32 bytes in URL-safe base64; "
        "in the file HOME/secret.key by default.",
    )
    job_slots: int = Field(
        default=1, ge=1, description="Trainings and validations that run at once; others wait."
    )
    command_slots: int = Field(
        default=8, ge=1, description="Scans, stagings and other jobs that run at once; others wait."
    )
    job_environment: tuple[str, ...] = Field(
        default=(),
        description="Variables that jobs inherit besides those that they need: names with commas "
        "between, in which * stands for any characters.",
    )
    lock_wait_s: float = Field(
        default=60.0, gt=0, description="How long a write waits for another one [s]."
    )
    query_timeout_s: float = Field(
        default=600.0, gt=0, description="How long a query may take [s]."
    )
    query_memory: str = Field(
        default="2GB",
        pattern=r"^\d+(\.\d+)? ?([KMGT]i?B)$",
        description="Memory that a process's queries may take.",
    )
    query_spill: str = Field(
        default="32GB",
        pattern=r"^\d+(\.\d+)? ?([KMGT]i?B)$",
        description="Temporary disk space that a process's queries may take beyond their memory.",
    )
    snapshot_memory_mb: int | None = Field(
        default=None,
        ge=0,
        description="Memory in which a server holds the newest snapshot [MB]; 0 holds none. "
        "A quarter of the machine's by default.",
    )
    compact_files: int = Field(
        default=50,
        ge=0,
        description="Data files that commits may add to one table of the catalog before a server "
        "or a watcher compacts it; 0: neither compacts.",
    )
    query_max_rows: int = Field(
        default=1_000_000, gt=0, description="Rows that one statement may return."
    )
    statements_at_once: int = Field(
        default=32, ge=1, le=256, description="Statements that a server process runs at once."
    )
    statements_waiting: int = Field(
        default=512, ge=0, description="Statements that wait for their turn; more are refused."
    )
    jobs_each: int = Field(
        default=20,
        ge=1,
        description="Jobs that a user limited to collections may have waiting or running.",
    )
    ranks_each: int = Field(
        default=1024,
        ge=1,
        description="Processes that the waiting and running trainings, validations, predictions "
        "and programs of one user may have together.",
    )
    job_workers: int | None = Field(
        default=None,
        ge=1,
        description="Workers that a training or validation on this machine may have; as many as it "
        "has cores, and 2 at least, by default.",
    )
    run_programs: Literal["nobody", "admins", "users"] = Field(
        default="nobody",
        description="Whose programs the server runs as jobs of kind run: nobody's; admins'; or "
        "users' who may write and see every row. They run as the server's own user does.",
    )
    jobs_in_container: bool = Field(
        default=False,
        description="Whether jobs run in containers or pods: without staging they read sources at "
        "the folders that these mount.",
    )
    afm_command: tuple[str, ...] = Field(
        default=("/usr/lpp/mmfs/bin/mmafmctl",),
        min_length=1,
        description="mmafmctl, and what leads to it, such as 'ssh root@node "
        "/usr/lpp/mmfs/bin/mmafmctl'.",
    )
    afm_cos_command: tuple[str, ...] = Field(
        default=("/usr/lpp/mmfs/bin/mmafmcosctl",),
        min_length=1,
        description="mmafmcosctl, and what leads to it, for targets afmcos:FILESYSTEM/FILESET.",
    )
    afm_gateway: str = Field(
        default="",
        pattern=r"^[A-Za-z0-9_.-]*$",
        description="Gateway node that prefetches run on: local, all, or a node's name; AFM's own "
        "choice where empty.",
    )
    afm_force: bool = Field(
        default=False,
        description="Whether prefetches fetch whatever AFM's own restrictions are (--force).",
    )
    recall_command: tuple[str, ...] = Field(
        default=(),
        description="What recalls files from tape by a list, such as 'ssh archi@node sudo "
        "/opt/ibm/ltfsee/bin/eeadm recall'; without it reading a file recalls it.",
    )
    migrate_command: tuple[str, ...] = Field(
        default=(),
        description="What migrates files to tape by a list, such as 'ssh archi@node sudo "
        "/opt/ibm/ltfsee/bin/eeadm migrate {list} -p pool1': a job's last step with --migrate.",
    )
    restore_days: int = Field(
        default=7, ge=1, description="How long restored objects of S3 archives stay [days]."
    )
    restore_tier: str = Field(
        default="Standard",
        pattern="^[A-Za-z]+$",
        description="How soon S3 archives restore objects: Standard, Bulk, Expedited; IBM COS "
        "has Accelerated, too.",
    )
    list_folder: Path | None = Field(
        default=None,
        description="Folder of the lists of files for storage systems' commands, which the storage "
        "nodes have at the same path; HOME/lists by default.",
    )
    streams_each: int = Field(
        default=100,
        ge=1,
        description="Streams of jobs' events that a server process sends to one user at once.",
    )
    connections: int = Field(
        default=16_384,
        ge=8,
        description="Connections that a server process keeps open; of those that ask nothing the "
        "oldest are closed for new ones.",
    )
    head_timeout_s: float = Field(
        default=10.0, gt=0, description="How long a request's head may take to come [s]."
    )
    body_timeout_s: float = Field(
        default=30.0,
        gt=0,
        description="How long a request's body may take to come [s], and 1 s more for each 4 KiB.",
    )
    write_timeout_s: float = Field(
        default=30.0, gt=0, description="How long a client may read nothing of its answer [s]."
    )
    keep_alive_s: int = Field(
        default=15, gt=0, description="How long a connection may wait for its next request [s]."
    )
    worker_timeout_s: float = Field(
        default=30.0,
        ge=2,
        description="How long one of several server processes may stand still before it is "
        "replaced [s].",
    )
    max_body_mb: int = Field(default=1, ge=1, description="What a request's body may have [MiB].")
    max_map_mb: int = Field(
        default=16, ge=1, description="What a request with a map may have [MiB]."
    )
    max_file_mb: int = Field(
        default=1024, ge=1, description="What a request with a file of tag values may have [MiB]."
    )
    source_schemes: tuple[str, ...] = Field(
        default=tuple(SCHEMES),
        description="Schemes of sources that may be added over REST, with commas between.",
    )
    source_hosts: tuple[str, ...] = Field(
        default=(),
        description="Hosts (or host:port) of S3 servers inside the server's own network that "
        "sources added over REST may name, also by http, with commas between; public ones may be "
        "named by https anyway.",
    )
    webhook_hosts: tuple[str, ...] = Field(
        default=(),
        description="Hosts (or host:port) that webhooks may name, by https or http, with commas "
        "between; none by default.",
    )
    source_roots: tuple[Path, ...] = Field(
        default=(),
        description="Folders below which sources added over REST may lie, with colons between; "
        "admins may name any.",
    )

    trusted_proxies: tuple[str, ...] = Field(
        default=(),
        description="Addresses or networks of proxies whose X-Forwarded-For and X-Forwarded-Proto "
        "are believed, with commas between; of nobody by default.",
    )

    trusted_user_header: str = Field(
        default="",
        description="Header by which a proxy of FRAMESIFT_TRUSTED_PROXIES names the user who opens "
        "pages; empty: none.",
    )

    oidc_issuer: str = Field(
        default="",
        description="URL of the OpenID provider by which users log in, as its discovery document "
        "has it; empty: none.",
    )
    oidc_client_id: str = Field(default="", description="What the provider calls this server.")
    oidc_client_secret: SecretStr | None = Field(
        default=None, description="The client's secret; a public client has none."
    )
    oidc_client_secret_file: Path | None = Field(
        default=None, description="File with the client's secret, in place of the variable."
    )
    oidc_groups: Path | None = Field(
        default=None, description="TOML file that says which roles and collections groups have."
    )
    oidc_groups_claim: str = Field(
        default="groups", description="Claim that has the names of a user's groups."
    )
    oidc_name_claim: str = Field(
        default="preferred_username", description="Claim that has the name of a new user."
    )
    oidc_scopes: str = Field(
        default="openid profile", description="Scopes that a login asks for, with blanks between."
    )
    oidc_audience: str = Field(
        default="",
        description="Audience (aud) of access tokens of the provider that programs may send; "
        "empty: none are taken.",
    )
    oidc_title: str = Field(
        default="", description="The provider's name on the login page; its host by default."
    )
    oidc_ca_bundle: Path | None = Field(
        default=None,
        description="PEM file of authorities to trust for the provider, beside the system's.",
    )

    mcp: bool | None = Field(
        default=None,
        description="Whether assistants may ask at /mcp; by default where the extra mcp is there.",
    )

    server: str | None = Field(
        default=None, description="URL of a server that commands ask, in place of a home."
    )
    token: SecretStr | None = Field(default=None, description="A token for that server.")
    server_ca_bundle: Path | None = Field(
        default=None, description="PEM file of authorities to trust for that server."
    )
    config: Path = Field(
        default_factory=lambda: Path.home() / ".config" / "framesift",
        description="Folder where 'framesift login' keeps tokens.",
    )

    @model_validator(mode="before")
    @classmethod
    def _with_environment(cls, fields: Any) -> Any:
        return _of_environment() | fields

    @field_validator(
        "home",
        "cache",
        "catalog_metadata",
        "catalog_data",
        "records",
        "config",
        "list_folder",
        mode="before",
    )
    @classmethod
    def _is_a_place(cls, value: Any) -> Any:
        # A script's unset variable would otherwise mean the current folder, or another catalog.
        if value == "":
            raise ValueError("empty: name a place, or unset the variable")
        return value

    @field_validator("server", mode="before")
    @classmethod
    def _empty_is_none(cls, value: Any) -> Any:
        return value or None

    @field_validator("source_schemes", "source_hosts", "webhook_hosts", mode="before")
    @classmethod
    def _by_commas(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return tuple(piece.strip().lower() for piece in value.split(",") if piece.strip())

    @field_validator("job_environment", "trusted_proxies", mode="before")
    @classmethod
    def _names(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return tuple(piece.strip() for piece in value.split(",") if piece.strip())

    @field_validator(
        "afm_command", "afm_cos_command", "recall_command", "migrate_command", mode="before"
    )
    @classmethod
    def _words(cls, value: Any) -> Any:
        return tuple(shlex.split(value)) if isinstance(value, str) else value

    @field_validator("source_roots", mode="before")
    @classmethod
    def _by_colons(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return tuple(piece for piece in value.split(os.pathsep) if piece)


_TEXTS: dict[Any, Callable[[str], Any]] = {
    Path: Path,
    Path | None: Path,
    str: str,
    str | None: str,
    SecretStr | None: SecretStr,
}
"""Types of fields for which every text but the empty one is a value, and what makes it."""


def _of_environment() -> dict[str, str]:
    """Texts of the variables that are set, by their fields."""
    names = {name.lower(): text for name, text in os.environ.items()}
    values = {field: names.get(_PREFIX + field) for field in Settings.model_fields}
    return {field: text for field, text in values.items() if text is not None}


def _takes_any_text(field: FieldInfo) -> bool:
    return field.annotation in _TEXTS and not field.metadata


def read_settings() -> Settings:
    """The settings of this process.

    Raises:
        InvalidInput: A variable's value cannot be used; the message names it.
    """
    fields, texts = Settings.model_fields, _of_environment()
    if all(text and _takes_any_text(fields[name]) for name, text in texts.items()):
        values = {name: _TEXTS[fields[name].annotation](text) for name, text in texts.items()}
        return Settings.model_construct(**values)
    try:
        return Settings()
    except ValidationError as error:
        fault = error.errors()[0]
        name = _PREFIX.upper() + "_".join(str(key) for key in fault["loc"]).upper()
        reason = fault["msg"].removeprefix("Value error, ")
        raise InvalidInput(f"{name}={fault['input']}: {reason}") from error
