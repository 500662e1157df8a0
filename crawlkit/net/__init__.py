"""net: the only code that knows HTTP.

In the order a request meets them: `fetch` (one URL to one answer or reason, never an exception for what a remote did),
`transport` (the connection pool behind httpx's seam), `resolver` (names to checked addresses), `addresses` (which are
public), `decode` (the body's encoding undone, bounded).
"""
