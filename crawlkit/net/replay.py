"""An archived answer, read as it was when it came: the same grammar, the same decoding, the same cap."""

from collections.abc import Iterable

from httptools import HttpParserError

from crawlkit.model import FetchFailure, Reason, Response
from crawlkit.net.decode import BodyDecoder
from crawlkit.net.wire import new_parser


class _Head:
    """Takes in one head."""

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header."""
        self.headers.append((name.lower(), value.rstrip(b" \t")))


def answer_of(head: bytes, body: Iterable[bytes], max_body_bytes: int, *, truncated: bool) -> Response | FetchFailure:
    """Return what an archived head and body (in pieces, content coding kept) say; `truncated` if the body was cut then."""
    found = _Head()
    parser = new_parser(found)
    try:
        parser.feed_data(head)
    except HttpParserError as error:
        return FetchFailure(Reason.PROTOCOL, str(error))
    decoder = BodyDecoder([value for name, value in found.headers if name == b"content-encoding"], max_body_bytes)
    for piece in body:
        if not decoder.feed(piece):
            break
    content, cut = decoder.finish()
    return Response(parser.get_status_code(), tuple(found.headers), content, truncated or cut)
