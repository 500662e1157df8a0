"""Certificates made for a test, as they should be and as they should not."""

import datetime
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
DAY = datetime.timedelta(days=1)
NOW = datetime.datetime.now(datetime.UTC)
OLD_CIPHERS = "DEFAULT@SECLEVEL=0"  # what a server must say so as to show what is too weak


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate with its key."""

    certificate: x509.Certificate
    key: Key

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()


def new_key() -> Key:
    return ec.generate_private_key(ec.SECP256R1())


def common_name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def authority(name: str, issuer: Identity | None = None) -> Identity:
    """A root, or an intermediate of `issuer`."""
    return _signed(common_name(name), new_key(), issuer, x509.BasicConstraints(ca=True, path_length=None), 30 * DAY)


def server_identity(
    issuer: Identity | None,
    *names: str,
    subject: x509.Name | None = None,
    key: Key | None = None,
    ends: datetime.timedelta = 30 * DAY,
) -> Identity:
    """A certificate for `names`, signed by itself where there is no issuer."""
    alternative = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
    name = common_name(names[0]) if subject is None else subject
    return _signed(name, key or new_key(), issuer, alternative, ends)


def _signed(
    subject: x509.Name,
    key: Key,
    issuer: Identity | None,
    extension: x509.ExtensionType,
    ends: datetime.timedelta,
) -> Identity:
    by = subject if issuer is None else issuer.certificate.subject
    builder = x509.CertificateBuilder(by, subject, key.public_key(), x509.random_serial_number(), NOW - 60 * DAY, NOW + ends)
    builder = builder.add_extension(extension, critical=True)
    return Identity(builder.sign(key if issuer is None else issuer.key, hashes.SHA256()), key)


def server_context(folder: Path, identity: Identity, *chain: Identity) -> ssl.SSLContext:
    """What a server shows: its certificate, then `chain` in that order. Files are written to `folder`."""
    file = folder / "server.pem"
    key = identity.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    file.write_text(key + identity.pem + "".join(one.pem for one in chain))
    return context_of(file)


def context_of(certificates: Path, key: Path | None = None) -> ssl.SSLContext:
    """What a server shows from files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers(OLD_CIPHERS)
    context.load_cert_chain(certificates, key)
    return context


def client_context(*roots: str) -> ssl.SSLContext:
    """What a client trusts, of PEM texts."""
    context = ssl.create_default_context(cadata="".join(roots))
    assert context.verify_mode is ssl.CERT_REQUIRED
    return context
