"""A certificate that a server signs itself, for homes without one of an authority."""

import ipaddress
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from catalog.errors import StorageError
from catalog.storage.atomic_write import atomic_write

if TYPE_CHECKING:
    from cryptography import x509

_DAYS = 365
_RENEWED_BEFORE = timedelta(days=7)


def self_signed(folder: Path, host: str) -> tuple[Path, Path]:
    """Certificate and key for this machine's names, made where there are none that fit.

    Args:
        folder: Where they lie, as cert.pem and key.pem.
        host: The address that is listened on; its names are in the certificate, too.

    Raises:
        StorageError: The folder cannot be written.
    """
    certificate, key = folder / "cert.pem", folder / "key.pem"
    names = _names(host)
    try:
        if not key.exists() or not _fits(certificate, names):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            _make(certificate, key, names)
    except OSError as error:
        raise StorageError(f"{folder}: {error.strerror}", str(folder)) from error
    return certificate, key


def _names(host: str) -> list[str]:
    names = ["localhost", "127.0.0.1", "::1", socket.gethostname(), socket.getfqdn()]
    if host not in ("0.0.0.0", "::"):  # noqa: S104  not listened on here
        names.append(host)
    return list(dict.fromkeys(name for name in names if name))


def _fits(path: Path, names: list[str]) -> bool:
    """Return whether there is a certificate that counts for a while, for all the names."""
    from cryptography import x509

    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
        known = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (FileNotFoundError, ValueError, x509.ExtensionNotFound):
        return False
    covered = {str(name) for name in known.get_values_for_type(x509.DNSName)}
    covered |= {str(address) for address in known.get_values_for_type(x509.IPAddress)}
    lasts = certificate.not_valid_after_utc - datetime.now(UTC)
    return lasts > _RENEWED_BEFORE and set(names) <= covered


def _make(certificate_file: Path, key_file: Path, names: list[str]) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Framesift")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=_DAYS))
        .add_extension(x509.SubjectAlternativeName([_general(name) for name in names]), False)
        # An authority of itself, so that clients can be told to trust this file.
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    atomic_write(key_file, pem, mode=0o600)
    content = certificate.public_bytes(serialization.Encoding.PEM)
    atomic_write(certificate_file, content, mode=0o600)


def _general(name: str) -> "x509.GeneralName":
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
