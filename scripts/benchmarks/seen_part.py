"""Fill a seen-set and look URLs up in it, layer by layer.

python -m benchmarks.seen_part --urls N --hosts N --checks N --directory DIR
"""

import argparse
import json
import random
import time
from collections.abc import Iterable
from pathlib import Path

from benchmarks.memory_of import written_bytes
from benchmarks.page_mix import PageMix
from crawlkit.state import keys
from crawlkit.state.bloom import MappedBloom, boot_id
from crawlkit.state.codec import SeenEntry, UrlState
from crawlkit.state.seen import SeenSet
from crawlkit.state.store import Store

URLS_A_BATCH = 20_000
SETTLED = SeenEntry(UrlState.SETTLED, 3, 0)


def _fill(store: Store, seen: SeenSet, mix: PageMix) -> float:
    """Add every URL in an order in which hosts alternate; return the CPU seconds it took, writing included."""
    ids = [keys.host_id(mix.host(host)) for host in range(mix.hosts)]
    spent_s = 0.0
    batch: list[tuple[str, bytes]] = []

    def flush() -> float:
        began_s = time.process_time()
        for url, host in batch:
            seen.add(url, host, SETTLED)
        store.freeze().write()
        store.install()
        batch.clear()
        return time.process_time() - began_s

    for number in range(mix.size(0)):
        batch += [(mix.url(host, number), ids[host]) for host in range(mix.hosts) if number < mix.size(host)]
        if len(batch) >= URLS_A_BATCH:
            spent_s += flush()
    return spent_s + (flush() if batch else 0.0)


def _look_up(seen: SeenSet, checks: Iterable[tuple[str, bytes]], *, known: bool) -> float:
    """Return look-ups a second of CPU; every one of them must answer as `known` says."""
    listed = list(checks)
    began_s = time.thread_time()
    for url, host in listed:
        if (seen.find(url, host) is not None) is not known:
            raise AssertionError(f"the seen-set is wrong about {url}")
    return len(listed) / (time.thread_time() - began_s)


def measure(options: argparse.Namespace) -> dict[str, float]:
    """Return the figures."""
    mix = PageMix(options.urls, options.hosts)
    rng = random.Random(5)
    directory: Path = options.directory
    directory.mkdir()
    database, filter_path = directory / "db", directory / "seen.bloom"

    def some(*, spread: bool) -> Iterable[tuple[str, bytes]]:
        """Draw known URLs: over all hosts, or of one host after the other."""
        host = 0
        for n in range(options.checks):
            if spread or n % 500 == 0:
                host = rng.randrange(mix.hosts)
            yield mix.url(host, rng.randrange(mix.size(host))), keys.host_id(mix.host(host))

    figures: dict[str, float] = {}
    written = written_bytes()
    with Store(database, create=True) as store:
        bloom = MappedBloom.create(filter_path, b"bench", boot_id())
        bloom.mark_complete()
        seen = SeenSet(store, bloom)
        figures["adds_per_s"] = options.urls / _fill(store, seen, mix)
        seen.close()
    figures["written_bytes"] = (written_bytes() - written) / options.urls
    figures["disk_bytes"] = sum(path.stat().st_size for path in database.iterdir()) / options.urls
    figures["bloom_bytes"] = filter_path.stat().st_size / options.urls
    with Store(database, create=False) as store:
        bloom = MappedBloom.reuse(filter_path, b"bench".ljust(16, b"\0"), boot_id()) or MappedBloom(filter_path)
        seen = SeenSet(store, bloom)
        fresh = [
            (mix.url(host % mix.hosts, 10**9 + host), keys.host_id(mix.host(host % mix.hosts)))
            for host in range(options.checks)
        ]
        figures["unseen_per_s"] = _look_up(seen, fresh, known=False)
        wrong = sum(keys.seen_key(host, url) in bloom for url, host in fresh)
        figures["wrong_maybe"] = wrong / len(fresh)
        figures["spread_per_s"] = _look_up(seen, some(spread=True), known=True)
        figures["one_host_per_s"] = _look_up(seen, some(spread=False), known=True)
        recent = list(some(spread=True))[:10_000]
        _look_up(seen, recent, known=True)
        figures["recent_per_s"] = _look_up(seen, recent, known=True)
        seen.close()
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--urls", type=int, required=True)
    parser.add_argument("--hosts", type=int, required=True)
    parser.add_argument("--checks", type=int, required=True)
    parser.add_argument("--directory", type=Path, required=True)
    print(json.dumps(measure(parser.parse_args())))


if __name__ == "__main__":
    main()
