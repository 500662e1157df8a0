"""net: the only code that knows HTTP.

In the order a request meets them: `fetch` (one URL to one answer or reason, never an exception for what a remote did),
`deadline` (one timer for all requests), `request` (httpx's request type, made cheap), `transport` (httpx's seam), `pool`
(connections kept), `connect` (new ones), `proxy` (new ones through a proxy), `resolver` (names to checked addresses),
`addresses` (which are public), `wire` (one connection: request out, answer in), `decode` (the body's encoding undone,
bounded). `http2` is the other transport; `local` is no HTTP but the sockets of this machine.
"""

import sys

# httpx would load its own command line, and rich and pygments with it, where they are installed: a tenth of what crawlkit
# takes to start. It does without where this cannot be imported.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
