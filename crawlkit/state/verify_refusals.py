"""Checking the rows that tell why URLs were refused: each lies where its URL puts it, and no host has too many."""

from collections.abc import Callable

from crawlkit.errors import StateDamaged
from crawlkit.state import keys
from crawlkit.state.findings import Findings, Rule
from crawlkit.state.refusals import MOST_A_HOST, decode_refusal
from crawlkit.state.store import Store


def check_refusals(store: Store, findings: Findings, host_id: Callable[[str], bytes]) -> None:
    """Walk over them; `host_id` gives the id of a URL's host."""
    host, count = b"", 0
    for key, value in store.walk(keys.REFUSAL, keys.after(keys.REFUSAL)):
        try:
            row = decode_refusal(value)
        except StateDamaged as error:
            findings.broke(Rule.DECODES, f"{key.hex()}: {error}")
            continue
        if key != keys.refusal_key(host_id(row.url), row.url):
            findings.broke(Rule.REFUSALS, f"{row.url} was refused at another host")
        count = count + 1 if key[1:9] == host else 1
        host = key[1:9]
        if count == MOST_A_HOST + 1:
            findings.broke(Rule.REFUSALS, f"more than {MOST_A_HOST} rows of the host of {row.url}")
