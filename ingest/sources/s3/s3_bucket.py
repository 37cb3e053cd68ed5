"""One bucket of an S3 server: obstore moves the bytes, boto3 finds credentials and the region."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import boto3
import botocore
import obstore
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ProfileNotFound
from obstore.auth.boto3 import Boto3CredentialProvider
from obstore.exceptions import (
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import S3Store

from catalog.errors import (
    ArchivedFile,
    BadFile,
    FramesiftError,
    InvalidInput,
    OtherVersion,
    StorageError,
    UnreadableFile,
)
from catalog.storage.file_version import listed_version
from catalog.storage.file_version import version_text as shown_version
from catalog.storage.s3_keys import check_keys
from ingest.sources.endpoint_proxy import REDIRECTED, Way, way_to
from ingest.sources.opened_file import OpenedFile, check_version, end_of
from ingest.sources.s3.s3_page import ObjectEntry, Page, page_of, read_pages_of
from ingest.sources.s3.s3_plain_get import PlainGets, PlainObject
from ingest.sources.sealed_keys import unseal
from ingest.sources.source_options import SourceOptions

_BUCKET = re.compile(r"[A-Za-z0-9._-]{1,255}")
"""boto3's own limits. A bucket's name becomes a part of AWS's host name."""

_CONNECT_SECONDS = 5
_IDLE_SECONDS = 20
_REQUEST_SECONDS = 300

_REASONS = {
    "NoSuchBucket": "no such bucket; check its name and the endpoint",
    "InvalidBucketName": "no legal bucket name; expected s3://bucket/prefix",
    "AccessDenied": "access denied; these credentials may not list or read it",
    "AllAccessDisabled": "access denied; the bucket is disabled",
    "AccountProblem": "access denied; the account has a problem",
    "InvalidAccessKeyId": "the server does not know this access key; check the profile or the keys",
    "SignatureDoesNotMatch": "the secret key is wrong: its signature does not match",
    "ExpiredToken": "the credentials have expired; log in again",
    "InvalidToken": "the session token is not valid; log in again",
    "RequestTimeTooSkewed": "this machine's clock is too far from the server's; set it",
    "PermanentRedirect": "the bucket lies in another region; give its region",
    "AuthorizationHeaderMalformed": "the bucket lies in another region; give its region",
    "IllegalLocationConstraintException": "the bucket lies in another region; give its region",
    "InvalidObjectState": "is archived (Glacier); restore it first",
    "SlowDown": "the server asks to slow down; use fewer workers",
}
_STATUS_CODES = {"301": "PermanentRedirect", "403": "AccessDenied", "404": "NoSuchBucket"}
# What follows it in obstore's errors is the answer's body, which is not shown.
_STATUS = re.compile(r"status code: (\d{3})")

_NO_TLS = re.compile("WRONG_VERSION_NUMBER|RECORD_LAYER_FAILURE|HTTP_REQUEST|InvalidContentType")
"""What OpenSSL's versions and rustls call an answer that is none of TLS."""

_CLOSED = re.compile("ConnectionClosed|BadStatusLine|SendRequest")
"""What boto3 and obstore call a connection that ends before an answer."""
# What ails one object, while the rest of the bucket may be well.
_IS_ARCHIVED = "InvalidObjectState"
_OBJECT_CODES = frozenset({"AccessDenied", "NoSuchKey"})


@dataclass(frozen=True, slots=True)
class S3Address:
    """The parts of s3://bucket/key. Nothing is percent-decoded: keys may hold any character."""

    bucket: str
    key: str

    @classmethod
    def parse(cls, uri: str) -> "S3Address":
        """Split a URI.

        Raises:
            InvalidInput: It is not of that form.
        """
        scheme, _, rest = uri.partition("://")
        bucket, _, key = rest.partition("/")
        if scheme.lower() != "s3" or not _BUCKET.fullmatch(bucket):
            raise InvalidInput(f"source {uri}: expected s3://bucket or s3://bucket/prefix")
        return cls(bucket, key)

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}".rstrip("/")


def obstore_can_name(key: str) -> bool:
    """Return whether obstore's paths can hold this key; boto3 reads those that they cannot.

    Empty, "." and ".." segments and control characters are refused by it, outer slashes dropped:
    https://docs.rs/object_store/latest/object_store/path/struct.Path.html
    """
    return not _OBSTORE_REFUSES.search(key)


_OBSTORE_REFUSES = re.compile(r"(?:^|/)\.{0,2}(?:/|\Z)|[\x00-\x1f\x7f]")

_MD5 = re.compile("[0-9a-f]{32}")
"""An ETag that is the MD5 of its object: of one that was not sent in parts."""

_WHOLE_BYTES = 16 * 2**20
"""An object up to this size is taken in one piece."""

_CHUNK_BYTES = 4 * 2**20

_SENDS = 3
"""Tries of a request whose connection was closed before the server took it."""


class S3Bucket:
    """Lists and reads a bucket. Its methods may be called from many threads at once.

    Attributes:
        client: boto3's client, for what obstore cannot do.
        store: obstore's store, for bytes and long listings.
    """

    def __init__(self, name: str, options: SourceOptions) -> None:
        """Find credentials, endpoint and region; ask the server only for an AWS bucket's region."""
        self.name, self.options = name, options
        session = session_of(options)
        self._way: Way | None = None
        self._proxy = ""
        if options.reach:
            self._way, self._proxy = way_to(options.endpoint_url, options.reach)
        self._credentials = None if options.anonymous else _credentials(session, name)
        self.client = self._client(session)
        read_pages_of(self.client)
        host = urlsplit(self.client.meta.endpoint_url).hostname or ""
        self._endpoint = "" if host.endswith("amazonaws.com") else self.client.meta.endpoint_url
        self.region = options.region or session.region_name or self._find_region()
        self.store = self._store()
        self._plain = self._plain_gets(session)

    def _client(self, session: Any) -> Any:
        options = self.options
        config = Config(
            signature_version=botocore.UNSIGNED if options.anonymous else "s3v4",
            s3={"addressing_style": "path"},  # own servers seldom have a host name per bucket
            request_checksum_calculation="when_required",  # older servers do not know them
            response_checksum_validation="when_required",
            retries={"mode": "standard", "total_max_attempts": 4},
            connect_timeout=min(_CONNECT_SECONDS, options.give_up_after),
            read_timeout=min(_IDLE_SECONDS, options.give_up_after),
            proxies={"http": self._proxy, "https": self._proxy} if self._proxy else None,
        )
        verify = (options.ca_bundle or None) if options.verify_tls else False
        region = options.region or session.region_name or "us-east-1"
        try:
            return session.client(
                "s3",
                endpoint_url=options.endpoint_url or None,
                region_name=region,
                verify=verify,
                config=config,
            )
        except (BotoCoreError, ValueError) as error:
            raise InvalidInput(f"s3://{self.name}: {_first_line(error)}") from error

    def _find_region(self) -> str:
        """The region AWS names in any answer about a bucket, even in a refusal."""
        if self._endpoint:
            return "us-east-1"  # a custom server takes whatever its clients sign
        try:
            answer = self.client.head_bucket(Bucket=self.name)
        except ClientError as error:
            answer = error.response
        except BotoCoreError as error:
            raise self.trouble(error) from error
        headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        return str(headers.get("x-amz-bucket-region", "us-east-1"))

    def _store(self) -> S3Store:
        options = self.options
        give_up = options.give_up_after
        client: dict[str, Any] = {
            "allow_http": self._endpoint.startswith("http://"),
            "allow_invalid_certificates": not options.verify_tls,
            "connect_timeout": timedelta(seconds=min(_CONNECT_SECONDS, give_up)),
            "read_timeout": timedelta(seconds=min(_IDLE_SECONDS, give_up)),
            "timeout": timedelta(seconds=_REQUEST_SECONDS),
        }
        if self._proxy:
            client["proxy_url"] = self._proxy
        if options.ca_bundle:
            client["root_certificate"] = _read_ca_bundle(options.ca_bundle)
        settings: dict[str, Any] = {"region": self.region, "skip_signature": options.anonymous}
        if self._endpoint:
            # Set both: object_store prefers this one, and takes it from the environment if unset.
            settings |= {"endpoint": self._endpoint, "aws_endpoint_url_s3": self._endpoint}
        elif "." not in self.name:  # AWS's certificate covers one label before s3
            settings["virtual_hosted_style_request"] = True
        return S3Store(
            self.name,
            client_options=client,  # type: ignore[arg-type]  # a TypedDict, filled by key
            retry_config={
                # Time is the bound: with jitter, 20 retries were over after 4.5 s.
                "max_retries": 1000,
                "retry_timeout": timedelta(seconds=give_up),
                "backoff": {
                    "init_backoff": timedelta(milliseconds=100),
                    "max_backoff": timedelta(seconds=min(5.0, give_up / 4)),
                    "base": 2,
                },
            },
            credential_provider=self._credentials,
            **settings,
        )

    def _plain_gets(self, session: Any) -> PlainGets | None:
        if not self._endpoint.startswith("http://") or self._proxy:
            return None
        keys = None if self.options.anonymous else session.get_credentials()
        idle_s = min(_IDLE_SECONDS, self.options.give_up_after)
        return PlainGets(self._endpoint, self.name, self.region, keys, idle_s)

    def head(self, key: str) -> ObjectEntry:
        """An object's size, last change and ETag.

        Raises:
            StorageError: It is not there, or the server refuses.
        """
        try:
            answer = self.client.head_object(Bucket=self.name, Key=key)
        except ClientError as error:
            if error.response["Error"]["Code"] in ("404", "NoSuchKey"):
                uri = f"s3://{self.name}/{key}"
                raise StorageError(f"{uri}: no such object, or no such bucket", uri) from error
            raise self.trouble(error, key) from error
        except BotoCoreError as error:
            raise self.trouble(error, key) from error
        return _entry(key, answer["ContentLength"], answer["LastModified"], answer.get("ETag"))

    def page(self, prefix: str, after: str = "", *, delimiter: str = "", keys: int = 1000) -> Page:
        """One page of a listing: objects, common prefixes, whether more follow."""
        parameters: dict[str, Any] = {"Prefix": prefix, "MaxKeys": keys}
        if after:
            parameters["StartAfter"] = after
        if delimiter:
            parameters["Delimiter"] = delimiter
        page = self._page(prefix, parameters)
        if any(entry.is_archived for entry in page.objects):
            # Only then: some servers refuse headers that they do not know.
            with suppress(StorageError):
                return self._page(
                    prefix, {**parameters, "OptionalObjectAttributes": ["RestoreStatus"]}
                )
        return page

    def _page(self, prefix: str, parameters: dict[str, Any]) -> Page:
        try:
            return page_of(self.client.list_objects_v2(Bucket=self.name, **parameters))
        except (BotoCoreError, ClientError) as error:
            raise self.trouble(error, prefix) from error

    def read(self, key: str, label: str, most: int) -> bytes:
        """A whole object.

        Args:
            label: How messages call it.
            most: Largest size that is read [bytes].

        Raises:
            BadFile: It vanished, may not be read or is too large.
            StorageError: The server cannot be reached, or refuses everything.
        """
        if not obstore_can_name(key):
            return self._read_odd(key, label, most)
        try:
            answer = self._get(key, {})
            size = answer.meta["size"]
            if size <= most:
                return bytes(answer.bytes())
        except (BaseError, OSError, ValueError) as error:
            raise self.object_trouble(error, label) from error
        raise _too_large(size, most, label)

    def read_range(self, key: str, label: str, start: int, length: int, etag: str = "") -> bytes:
        """At most ``length`` bytes from ``start``; fewer at the object's end.

        With ``etag``, only of that very object.

        Raises:
            BadFile: It vanished, may not be read, or is another than ``etag`` says.
            StorageError: The server cannot be reached, or refuses everything.
        """
        if length <= 0:
            return b""
        if not obstore_can_name(key):
            return self._range_odd(key, label, start, length, etag)
        options: dict[str, Any] = {"range": (start, start + length)}
        if etag:
            options["if_match"] = f'"{etag}"'
        try:
            answer = self._get(key, options)
            return bytes(answer.bytes())
        except (BaseError, OSError, ValueError) as error:
            if _is_beyond_end(error):
                return b""
            raise self.object_trouble(error, label) from error

    @contextmanager
    def open_object(
        self,
        key: str,
        label: str,
        version: str | None,
        start: int = 0,
        length: int | None = None,
    ) -> Iterator[OpenedFile]:
        """An object, opened to be read; see ingest.sources.opened_file.

        The request asks for the very version (If-Match). An ETag that is an MD5 is compared with
        that of what came.
        """
        kind, _, mark = (version or "").partition(":")
        etag = mark if kind == "etag" else ""
        if self._plain and not start and length is None and obstore_can_name(key):
            plain = self._plain.open(key, etag)
            if plain is not None:
                with plain:
                    yield self._opened_plainly(plain, label, version)
                return
        try:
            if obstore_can_name(key):
                entry, chunks = self._opened(key, start, length, etag)
            else:
                entry, chunks = self._opened_odd(key, start, length, etag)
        except (BaseError, OSError, ValueError, BotoCoreError, ClientError) as error:
            if _is_other_version(error):
                raise self._other_version(key, label) from error
            raise self.object_trouble(error, label) from error
        there = listed_version(entry.etag, entry.modified)
        check_version(label, entry.size, there, version)
        pieces = self._pieces(chunks, label, start, end_of(entry.size, start, length))
        yield OpenedFile(entry.size, there, pieces, self._md5_check(entry, label))

    def _opened_plainly(self, plain: PlainObject, label: str, version: str | None) -> OpenedFile:
        entry = plain.entry
        there = listed_version(entry.etag, entry.modified)
        check_version(label, entry.size, there, version)
        pieces = self._pieces(plain.pieces(), label, 0, entry.size)
        check_md5 = self._md5_check(entry, label)

        def read_into(buffer: memoryview) -> int:
            received = 0
            with suppress(OSError):
                received = plain.read_into(buffer)
            if received != entry.size:
                raise self._broken(label, f"{self._endpoint} broke off in the middle of its answer")
            return received

        return OpenedFile(entry.size, there, pieces, check_md5, read_into)

    def _opened(
        self, key: str, start: int, length: int | None, etag: str
    ) -> tuple[ObjectEntry, Iterator[bytes]]:
        options: dict[str, Any] = {"if_match": f'"{etag}"'} if etag else {}
        if length is not None:
            options["range"] = (start, start + length)
        elif start:
            options["range"] = {"offset": start}
        answer = self._get(key, options)
        meta = answer.meta
        modified = meta["last_modified"].astimezone(UTC)
        entry = _entry(key, meta["size"], modified, meta.get("e_tag"))
        if end_of(entry.size, start, length) - start <= _WHOLE_BYTES:
            return entry, _in_one_piece(answer)
        return entry, answer.stream(min_chunk_size=_CHUNK_BYTES)

    def _opened_odd(
        self, key: str, start: int, length: int | None, etag: str
    ) -> tuple[ObjectEntry, Iterator[bytes]]:
        condition = {"IfMatch": f'"{etag}"'} if etag else {}
        if start or length is not None:
            last = "" if length is None else start + length - 1
            condition["Range"] = f"bytes={start}-{last}"
        answer = self.client.get_object(Bucket=self.name, Key=key, **condition)
        total = answer.get("ContentRange", "").rpartition("/")[2]
        size = int(total) if total.isdecimal() else start + answer["ContentLength"]
        entry = _entry(key, size, answer["LastModified"], answer["ETag"])
        return entry, answer["Body"].iter_chunks(_CHUNK_BYTES)

    def _pieces(self, chunks: Iterator[bytes], label: str, start: int, end: int) -> Iterator[bytes]:
        received = start
        try:
            for chunk in chunks:
                received += len(chunk)
                yield chunk
        except (BaseError, OSError, ValueError, BotoCoreError) as error:
            raise self.object_trouble(error, label) from error
        if received != end:
            raise self._broken(
                label, f"{received - start:,} of {end - start:,} bytes came from byte {start:,} on"
            )

    def _md5_check(self, entry: ObjectEntry, label: str) -> Callable[[str], None] | None:
        if not _MD5.fullmatch(entry.etag):
            return None

        def check(md5: str) -> None:
            if self.has_md5(entry.key, entry.etag, md5) is False:
                raise self._broken(label, "what came has another MD5 than its ETag says")

        return check

    def has_md5(self, key: str, etag: str, md5: str) -> bool | None:
        """Return whether an object has this MD5, in hex; None where its ETag does not tell."""
        if not _MD5.fullmatch(etag):
            return None
        if md5 == etag:
            return True
        return None if self._hides_md5(key) else False

    def _broken(self, label: str, what: str) -> StorageError:
        uri = f"s3://{self.name}/{label}"
        return StorageError(f"{uri}: {what}", uri)

    def _hides_md5(self, key: str) -> bool:
        """Return whether encryption makes an object's ETag something else than an MD5.

        Source: https://docs.aws.amazon.com/AmazonS3/latest/API/API_Object.html (ETag)
        """
        try:
            answer = self.client.head_object(Bucket=self.name, Key=key)
        except (BotoCoreError, ClientError):
            return False
        return (
            answer.get("ServerSideEncryption", "AES256") != "AES256"
            or "SSECustomerAlgorithm" in answer
        )

    def _other_version(self, key: str, label: str) -> FramesiftError:
        try:
            entry = self.head(key)
        except StorageError:
            return UnreadableFile("cannot be read: it vanished from the bucket", label)
        there = shown_version(entry.size, listed_version(entry.etag, entry.modified))
        return OtherVersion(f"another version is there: {there}", label)

    def _get(self, key: str, options: dict[str, Any]) -> Any:
        """Call obstore.get, which does not try again where a kept connection was just closed."""
        for _ in range(_SENDS - 1):
            try:
                return obstore.get(self.store, key, options=options)  # type: ignore[arg-type]
            except BaseError as error:
                if "connection was not ready" not in str(error):
                    raise
        return obstore.get(self.store, key, options=options)  # type: ignore[arg-type]

    def _read_odd(self, key: str, label: str, most: int) -> bytes:
        try:
            answer = self.client.get_object(Bucket=self.name, Key=key)
            size = answer["ContentLength"]
            with answer["Body"] as body:
                if size <= most:
                    return bytes(body.read())
        except (BotoCoreError, ClientError) as error:
            raise self.object_trouble(error, label) from error
        raise _too_large(size, most, label)

    def _range_odd(self, key: str, label: str, start: int, length: int, etag: str) -> bytes:
        condition = {"IfMatch": f'"{etag}"'} if etag else {}
        span = f"bytes={start}-{start + length - 1}"
        try:
            answer = self.client.get_object(Bucket=self.name, Key=key, Range=span, **condition)
            with answer["Body"] as body:
                return bytes(body.read())
        except (BotoCoreError, ClientError) as error:
            if _is_beyond_end(error):
                return b""
            raise self.object_trouble(error, label) from error

    def object_trouble(self, error: Exception, label: str) -> FramesiftError:
        """BadFile for what ails one object, StorageError for what ails the server."""
        code = _code(error)
        if self._way and self._way.refused:
            return self.trouble(error, label)
        if isinstance(error, FileNotFoundError) or code in ("NoSuchKey", "404"):
            return UnreadableFile("cannot be read: it vanished from the bucket", label)
        if _is_other_version(error):
            return UnreadableFile("changed since it was listed; scan again", label)
        if code == _IS_ARCHIVED:
            return ArchivedFile(f"cannot be read: {_REASONS[code]}", label)
        if code in _OBJECT_CODES:
            return UnreadableFile(f"cannot be read: {_REASONS[code]}", label)
        return self.trouble(error, label)

    def trouble(self, error: Exception, key: str = "") -> StorageError:
        """A foreign error in one line: what, where, what to do; never a credential."""
        code = _code(error)
        if self._way and self._way.refused:
            reason = f"{self._endpoint} is not used: {self._way.refused}"
        elif self.options.anonymous and code == "AccessDenied":
            reason = "access denied without signing in; give a profile or keys"
        elif code in _REASONS:
            reason = _REASONS[code]
        else:
            reason = self._unnamed(error, code)
        uri = f"s3://{self.name}/{key}".rstrip("/")
        return StorageError(f"{uri}: {reason}", uri)

    def _unnamed(self, error: Exception, code: str) -> str:
        # Without the address: an object's key may hold any word.
        text = re.sub(r"https?://\S+", "", f"{type(error).__name__} {error}")
        where = self._endpoint or f"AWS in {getattr(self, 'region', 'its region')}"
        way = self._environment_proxy()
        if reason := self._connection_trouble(text, where, way):
            return reason
        if re.search(r"body error|IncompleteRead|ConnectionReset", text):
            return f"{where} broke off in the middle of its answer"
        if re.search(r"kind: Timeout|kind: Request|ReadTimeout|ConnectionClosed", text):
            seconds = self.options.give_up_after
            return f"{where} did not answer within {seconds:g} s of retries{way}"
        if code:
            return f"{where} answers {code}"
        match = _STATUS.search(text)
        if match and match[1] == "407" and self._way:
            # obstore takes the token away before it follows a redirect to another host.
            return f"{where} is not used: {REDIRECTED}"
        if match:
            return f"{where} answers status {match[1]}{way}"
        return f"{where}: {_first_line(error)}"

    def _connection_trouble(self, text: str, where: str, way: str) -> str:
        """Why there is no connection, or none that both sides understand; empty where there is."""
        if "CaUsedAsEndEntity" in text:
            return f"{where} shows its authority's certificate; give it one of its own, CA:FALSE"
        if _NO_TLS.search(text):
            plain = self._endpoint.replace("https://", "http://", 1)
            return f"{where} does not speak TLS{way}; if it speaks plain HTTP, give {plain}"
        if re.search(r"certificate|SSLError|UnknownIssuer", text, re.IGNORECASE):
            return (
                f"the certificate of {where} is not trusted{way}; give its authority as CA bundle"
            )
        if self._endpoint.startswith("http://") and _CLOSED.search(text):
            secure = self._endpoint.replace("http://", "https://", 1)
            return (
                f"{where} ends connections without an answer{way}; if it speaks TLS, give {secure}"
            )
        if re.search(r"kind: Connect|EndpointConnection|ConnectTimeout|ProxyConnection", text):
            return f"{where} cannot be reached{way}; check the endpoint and the network"
        return ""

    def _environment_proxy(self) -> str:
        """The words of an error on the proxy to the bucket; empty without one."""
        proxy = "" if self._proxy else _proxy_of(self.client.meta.endpoint_url)
        return f" through the proxy {proxy}" if proxy else ""


def session_of(options: SourceOptions) -> Any:
    """The boto3.Session that asks as the options say.

    Raises:
        InvalidInput: The profile or the CA bundle does not exist, or keys cannot be decrypted or
            used.
    """
    if options.ca_bundle and not Path(options.ca_bundle).is_file():
        raise InvalidInput(f"CA bundle {options.ca_bundle}: no such file; expected a PEM file")
    if options.sealed_keys:
        keys = unseal(options.sealed_keys)
        session = boto3.Session(keys.access_key, keys.secret_key)
    else:
        try:
            session = boto3.Session(profile_name=options.profile or None)
        except ProfileNotFound as error:
            raise InvalidInput(
                f"profile '{options.profile}' is not in ~/.aws/config or ~/.aws/credentials"
            ) from error
    if not options.anonymous:
        check_keys(session)
    return session


def _credentials(session: Any, bucket: str) -> Boto3CredentialProvider:
    try:
        # Asked again every 5 minutes: boto3 renews what is about to expire in less than 10.
        return Boto3CredentialProvider(session, ttl=timedelta(minutes=5))
    except (BotoCoreError, ValueError) as error:
        raise StorageError(
            f"s3://{bucket}: no credentials found; set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY or a profile, or ask anonymously if the bucket is public",
            f"s3://{bucket}",
        ) from error


def _read_ca_bundle(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InvalidInput(f"CA bundle {path}: {error.strerror}") from error


def _entry(key: str, size: int, modified: datetime, etag: str | None) -> ObjectEntry:
    return ObjectEntry(key, size, modified.replace(tzinfo=None), (etag or "").strip('"'))


def _too_large(size: int, most: int, label: str) -> BadFile:
    return BadFile(f"has {size:,} bytes; at most {most:,} are read", label)


def _is_beyond_end(error: Exception) -> bool:
    """Return whether a range begins where the object has ended."""
    status = _STATUS.search(str(error))
    return _code(error) in ("InvalidRange", "416") or (status is not None and status[1] == "416")


def _code(error: Exception) -> str:
    """S3's error code, or a word for it, or empty."""
    if isinstance(error, ClientError):
        code = re.sub(r"\W", "", str(error.response["Error"].get("Code", "")))[:64]
        return _STATUS_CODES.get(code, code)
    match = re.search(r"<Code>(\w{1,64})</Code>", str(error))
    if match:
        return match[1]
    if isinstance(error, PermissionDeniedError | UnauthenticatedError):
        return "AccessDenied"
    return "PermanentRedirect" if "redirect without LOCATION" in str(error) else ""


def _in_one_piece(answer: Any) -> Iterator[Any]:
    """An object's bytes in one piece, as a buffer that is not copied."""
    yield memoryview(answer.bytes())


def _is_other_version(error: Exception) -> bool:
    """Return whether the server refused a request because of its If-Match."""
    return isinstance(error, PreconditionError) or _code(error) in ("PreconditionFailed", "412")


def _first_line(error: Exception) -> str:
    line = str(error).strip().partition("\n")[0]
    return re.sub(r"\?\S+", "", line)[:300]  # a query string may carry a signature


def _proxy_of(endpoint: str) -> str:
    """Address of the environment's proxy, and its variable; empty without one, and no password."""
    parts, proxies = urlsplit(endpoint), getproxies()
    name = next((each for each in (parts.scheme, "all") if proxies.get(each)), "")
    if not name or proxy_bypass(parts.netloc):
        return ""
    address = proxies[name].rpartition("@")[2].rpartition("://")[2].rstrip("/")
    return f"{address} ({name.upper()}_PROXY)"
