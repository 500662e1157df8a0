"""The hosts of a crawl that does not run, as they would stand if it were resumed."""

from crawlkit.engine.figures import HostFigures, first_hosts, host_figures
from crawlkit.engine.turns import earliest_start_s, is_spent
from crawlkit.state.reading import CrawlReader


def hosts_at_rest(crawl: CrawlReader, most: int, now: float) -> list[HostFigures]:
    """Return the hosts that have work or are steered, up to `most`, those with most URLs first."""
    config = crawl.config()
    found: list[HostFigures] = []
    for record in crawl.hosts():
        next_s = earliest_start_s(record, config, None, now) - now
        found.append(host_figures(record, in_flight=0, next_s=next_s, now=now, is_spent=is_spent(record, config)))
        if len(found) >= 2 * most:
            found = first_hosts(found, most)
    return first_hosts(found, most)
