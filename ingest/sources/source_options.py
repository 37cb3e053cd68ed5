"""Options of a source: how it is reached, and what of it is left out."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from catalog.errors import InvalidInput
from ingest.sources.exclude import Excluded
from ingest.sources.mount import Mount

_LEAST_RATE, _MOST_RATE = 0.001, 1_000_000.0
"""Bounds of a rate limit [1/s]: below, one file of 16 MB takes hours."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Options of a source: its server, credentials and limits. Holds no secret that can be read.

    Credentials come from boto3's chain: environment, ~/.aws/credentials and config (SSO, role,
    process), container and instance metadata; or they are kept here, encrypted.
    """

    endpoint_url: str = ""
    """Server that speaks S3 (IBM COS, Ceph, MinIO), such as
    "https://s3.eu-de.cloud-object-storage.appdomain.cloud"; empty for AWS.
    """
    anonymous: bool = False
    """Ask unsigned, as public buckets allow."""
    profile: str = ""
    """Profile of ~/.aws/config; empty for the default one."""
    region: str = ""
    """Region of the bucket; empty to take the profile's, or to ask AWS."""
    ca_bundle: str = ""
    """PEM file of further authorities to trust; empty for the system's alone."""
    verify_tls: bool = True
    sealed_keys: str = ""
    """Keys of this source, as sealed_keys.seal gives them; empty for none."""
    within: str = ""
    """Folder that a folder or archive of this machine must lie below, links followed; empty for
    anywhere.
    """
    reach: str = ""
    """What an endpoint that was named over REST may lead to; see endpoint_proxy. Empty for
    anything.
    """
    host: str = ""
    """Server of a mounted file system, as clients of Spectrum Discover name it; only shown."""
    user: str = ""
    """Whom they say to ask it as; only shown."""
    give_up_after: float = 60.0
    """Longest time to retry a request that fails [s]."""
    exclude: tuple[str, ...] = ()
    """Patterns of what is left out; see ingest.sources.exclude."""
    part_of: str = ""
    """The data set that the source is a part of: extractors look for a frame's files in all of its
    sources. Empty for the source's own name.
    """
    mount: str = ""
    """Where its root lies on a mounted file system, as ingest.sources.mount writes it; empty where
    it is on none, or lies there itself.
    """
    max_mb_per_s: float = 0.0
    """Megabytes (10^6 bytes) a second that a staging fetches from it at most; 0 for any number."""
    max_requests_per_s: float = 0.0
    """Requests for its files that a staging sends a second at most; 0 for any number."""

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            InvalidInput: The endpoint is no http or https URL or holds a password, a pattern
                cannot be used, a mount is none, a limit cannot be kept, or options contradict each
                other.
        """
        Excluded(self.exclude)
        if self.mount:
            Mount.parse(self.mount)
        for limit in ("max_mb_per_s", "max_requests_per_s"):
            value = getattr(self, limit)
            if value != 0 and not _LEAST_RATE <= value <= _MOST_RATE:
                raise InvalidInput(
                    f"{limit}: got {value:g}, expected {_LEAST_RATE:g} to {_MOST_RATE:,.0f}, or 0 "
                    "for no limit"
                )
        endpoint = self.endpoint_url
        if endpoint and not endpoint.lower().startswith(("https://", "http://")):
            raise InvalidInput(f"endpoint {endpoint}: expected https://host[:port]")
        if "@" in endpoint:
            raise InvalidInput(
                "the endpoint URL holds a user or password; expected https://host[:port], "
                "and keys in a profile or in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            )
        if self.anonymous and self.profile:
            raise InvalidInput(f"anonymous and profile '{self.profile}' exclude each other")
        if self.sealed_keys and (self.anonymous or self.profile):
            raise InvalidInput("keys, profile and anonymous exclude each other; give one of them")
        if not self.give_up_after > 0:
            raise InvalidInput(f"give_up_after: got {self.give_up_after}, expected seconds above 0")

    def to_json(self) -> dict[str, Any]:
        """The options that differ from the default, ready for JSON."""
        return {
            field.name: list(value) if isinstance(value, tuple) else value
            for field in dataclasses.fields(self)
            if (value := getattr(self, field.name)) != field.default
        }

    def public(self) -> dict[str, Any]:
        """`to_json` without keys: only whether there are any; and without what fences it."""
        options = self.to_json()
        options.pop("within", None)
        options.pop("reach", None)
        options.pop("part_of", None)  # a source shows it by itself
        return options | {"sealed_keys": True} if options.pop("sealed_keys", "") else options

    @classmethod
    def from_json(cls, stored: Mapping[str, object]) -> "SourceOptions":
        """The options that to_json wrote.

        Raises:
            InvalidInput: An option is unknown or of the wrong type.
        """
        known = {field.name: field for field in dataclasses.fields(cls)}
        for name, value in stored.items():
            if name not in known:
                raise InvalidInput(
                    f"source option '{name}' is unknown; expected: {', '.join(known)}"
                )
            kind = type(known[name].default)
            if kind is tuple:
                kind = list
            if type(value) is not kind and not (kind is float and type(value) is int):
                raise InvalidInput(
                    f"source option {name}: got {value!r}, expected a {kind.__name__}"
                )
        values = {name: tuple(v) if isinstance(v, list) else v for name, v in stored.items()}
        return cls(**values)  # type: ignore[arg-type]  # checked above


NO_OPTIONS = SourceOptions()
"""Local folders, and AWS with the default credentials."""
