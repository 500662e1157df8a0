"""Sends each host the token that a file has for it, and no token to any other.

    echo '{"wiki.example.com": "s3cret"}' > tokens.json
    TOKENS=tokens.json crawlkit run https://wiki.example.com/ --plugin config/plugins/tokens.py

The crawl directory stores neither the tokens nor, with --warc, the header.
"""

import json
import os
from pathlib import Path
from urllib.parse import urlsplit

from crawlkit.plugins import Request

TOKENS = json.loads(Path(os.environ["TOKENS"]).read_text())


def request(request: Request) -> Request:
    """Add the header for hosts that have a token."""
    token = TOKENS.get(urlsplit(request.url).hostname)
    return request if token is None else request.with_header("Authorization", f"Bearer {token}")
