"""Asking and steering a running crawl: a Unix socket in its directory, for its owner only.

A connection carries one request, a line of JSON (`messages.Request`), and one answer, lines of JSON: first a `messages.Answer`,
which may be an error; after a `read`, arrays of rows (`state.copying`) and the string "end". `server` and
`answering` are the crawl's side, `client` that of the commands.
"""
