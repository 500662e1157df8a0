"""TLS contexts over the certificates in `tls`."""

from pathlib import Path
from ssl import PROTOCOL_TLS_CLIENT, PROTOCOL_TLS_SERVER, SSLContext

TLS = Path(__file__).parent / "tls"  # self-signed by one key that is used nowhere else; `expired` ended in 2020


def tls_server(certificate: str) -> SSLContext:
    context = SSLContext(PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / f"{certificate}.pem", TLS / "key.pem")
    return context


def tls_client(*roots: str) -> SSLContext:
    context = SSLContext(PROTOCOL_TLS_CLIENT)
    for root in roots:
        context.load_verify_locations(TLS / f"{root}.pem")
    return context
