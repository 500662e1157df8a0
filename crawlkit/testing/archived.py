"""The archive in simulated crawls: whether there is one, and what it is given."""

import random
from typing import Any

from crawlkit.exchange import Exchange
from crawlkit.model import Facts, FetchFailure, Job, Response


def archive_settings(rng: random.Random) -> dict[str, Any]:
    """Return the settings of a crawl that archives, or that does not."""
    return {"warc": True, "warc_size": rng.choice((1, 5_000, 1 << 30))} if rng.random() < 0.3 else {}


def exchange_of(job: Job, answer: Facts | Response | FetchFailure) -> Exchange | None:
    """Return an exchange that may have led to `answer`, None where there was none. Bodies are the same for many."""
    if isinstance(answer, FetchFailure):
        return None
    head = f"HTTP/1.1 {answer.status} \r\nContent-Type: text/plain\r\n\r\n".encode()
    return Exchange(f"GET {job.url} HTTP/1.1\r\n\r\n".encode(), head, f"{answer.status}: one body for many".encode())
