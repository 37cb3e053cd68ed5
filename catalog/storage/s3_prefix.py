"""A prefix of an S3 bucket that holds a catalog's data, and the keys to it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from catalog.errors import InvalidInput, StorageError, not_installed
from catalog.storage.s3_keys import check_keys

_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class S3Access:
    """Address of an S3 server and the profile whose keys sign requests. Holds no secret.

    Credentials come from boto3's chain: environment, ~/.aws/credentials and config (SSO, role,
    process), container and instance metadata.
    """

    endpoint_url: str = ""
    """Server that speaks S3, such as "https://s3.example.com"; empty for boto3's (AWS where nothing
    else is configured).
    """
    profile: str = ""
    """Profile of ~/.aws/config; empty for the default one."""
    region: str = ""
    """Region of the bucket; empty for the profile's."""
    ca_bundle: str = ""
    """PEM file of further authorities to trust; empty for the system's alone."""

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            InvalidInput: The endpoint is no http or https URL or holds a password, or the CA
                bundle is no file.
        """
        parts = urlsplit(self.endpoint_url)
        if "@" in self.endpoint_url:
            raise InvalidInput(
                "the S3 endpoint holds a user or password; expected https://host[:port], and keys "
                "in a profile or in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            )
        if self.endpoint_url and (parts.scheme not in ("https", "http") or not parts.netloc):
            raise InvalidInput(f"S3 endpoint {self.endpoint_url}: expected https://host[:port]")
        if self.ca_bundle and not Path(self.ca_bundle).is_file():
            raise InvalidInput(f"CA bundle {self.ca_bundle}: no such file; expected a PEM file")


class S3Keys(NamedTuple):
    """Keys that sign requests; token is empty for lasting keys."""

    access_key: str
    secret_key: str
    token: str


@dataclass(frozen=True)
class S3Prefix:
    """A prefix of a bucket; its text is s3://bucket/prefix/."""

    bucket: str
    """The bucket."""
    prefix: str
    """Ends in a slash, or is empty for the whole bucket."""
    access: S3Access = S3Access()
    """How it is reached."""

    @classmethod
    def parse(cls, uri: str, access: S3Access | None = None) -> "S3Prefix":
        """The prefix of a URI.

        Raises:
            InvalidInput: It is not of the form s3://bucket/prefix, or has segments that are no
                names, which servers and clients understand differently.
        """
        scheme, _, rest = uri.partition("://")
        bucket, _, prefix = rest.partition("/")
        prefix = prefix.removesuffix("/")
        odd = {"", ".", ".."} & set(prefix.split("/")) if prefix else None
        if scheme != "s3" or not bucket or set(rest) & set("@?#*[]'\\ ") or odd:
            named = uri if "@" not in uri else "the URI"  # what is before an @ may be a password
            raise InvalidInput(f"catalog data {named}: expected s3://bucket/prefix")
        return cls(bucket, f"{prefix}/" if prefix else "", access or S3Access())

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}"

    def endpoint(self) -> str:
        """URL of the server; empty for AWS."""
        url = str(self._client.meta.endpoint_url)
        return "" if (urlsplit(url).hostname or "").endswith("amazonaws.com") else url

    def region(self) -> str:
        """Region that requests are signed for."""
        return str(self._client.meta.region_name)

    def keys(self) -> S3Keys:
        """The keys as they are now: temporary ones are renewed before they expire.

        Raises:
            StorageError: There are none, or they cannot be renewed.
        """
        from botocore.exceptions import BotoCoreError

        try:
            credentials = self._session.get_credentials()
            frozen = credentials.get_frozen_credentials() if credentials is not None else None
        except BotoCoreError as error:
            raise StorageError(f"{self}: credentials: {_one_line(error)}", str(self)) from error
        if frozen is None or not frozen.access_key:
            raise StorageError(
                f"{self}: no credentials found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY "
                "or a profile",
                str(self),
            )
        return S3Keys(frozen.access_key, frozen.secret_key, frozen.token or "")

    def objects(self) -> Iterator[tuple[str, int]]:
        """Key and size [bytes] of every object below the prefix.

        Raises:
            StorageError: The server refuses or cannot be reached.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        pages = self._client.get_paginator("list_objects_v2")
        try:
            for page in pages.paginate(Bucket=self.bucket, Prefix=self.prefix):
                for entry in page.get("Contents", []):
                    yield str(entry["Key"]), int(entry["Size"])
        except (BotoCoreError, ClientError) as error:
            raise StorageError(f"{self}: {_one_line(error)}", str(self)) from error

    def fetch(self, name: str, path: Path) -> Path:
        """Copy the object of that name below the prefix to a file; the file.

        Raises:
            StorageError: There is none, or the server refuses or cannot be reached.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._client.download_file(self.bucket, f"{self.prefix}{name}", str(path))
        except (BotoCoreError, ClientError) as error:
            raise StorageError(f"{self}{name}: {_one_line(error)}", f"{self}{name}") from error
        return path

    def put(self, name: str, path: Path) -> None:
        """Copy a file to the object of that name below the prefix.

        Raises:
            StorageError: The server refuses or cannot be reached.
        """
        from boto3.exceptions import Boto3Error
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            self._client.upload_file(str(path), self.bucket, self.prefix + name)
        except (Boto3Error, BotoCoreError, ClientError, OSError) as error:
            raise StorageError(f"{self}{name}: {_one_line(error)}", f"{self}{name}") from error

    def delete_all(self) -> None:
        """Delete every object below the prefix."""
        self.delete([key.removeprefix(self.prefix) for key, _ in self.objects()])

    def delete(self, names: Sequence[str]) -> None:
        """Delete the objects of some names below the prefix; those that are gone count as deleted.

        One by one: servers of before 2025 refuse a request for many without the Content-MD5 that
        boto3 no longer sends (https://github.com/boto/boto3/issues/4392).

        Raises:
            StorageError: The server refuses or cannot be reached.
        """
        from concurrent.futures import ThreadPoolExecutor

        from botocore.exceptions import BotoCoreError, ClientError

        def delete(name: str) -> None:
            self._client.delete_object(Bucket=self.bucket, Key=f"{self.prefix}{name}")

        try:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                list(pool.map(delete, names))
        except (BotoCoreError, ClientError) as error:
            raise StorageError(f"{self}: {_one_line(error)}", str(self)) from error

    @cached_property
    def _session(self) -> Any:
        try:
            import boto3
            from botocore.exceptions import ProfileNotFound
        except ImportError as error:
            raise not_installed("S3", "team") from error
        try:
            session = boto3.Session(profile_name=self.access.profile or None)
        except ProfileNotFound as error:
            raise InvalidInput(
                f"profile '{self.access.profile}' is not in ~/.aws/config or ~/.aws/credentials"
            ) from error
        check_keys(session)
        return session

    @cached_property
    def _client(self) -> Any:
        session, access = self._session, self.access
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError

        try:
            return session.client(
                "s3",
                endpoint_url=access.endpoint_url or None,
                region_name=access.region or session.region_name or "us-east-1",
                verify=access.ca_bundle or None,
                config=Config(
                    s3={"addressing_style": "path"},
                    # Servers of before 2025 store the chunks of a checksum that nobody asked for
                    # with the file: https://github.com/boto/boto3/issues/4435.
                    request_checksum_calculation="when_required",
                    response_checksum_validation="when_required",
                    retries={"mode": "standard", "total_max_attempts": 4},
                    connect_timeout=5,
                    read_timeout=30,
                ),
            )
        except (BotoCoreError, ValueError) as error:
            raise InvalidInput(f"{self}: {_one_line(error)}") from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
