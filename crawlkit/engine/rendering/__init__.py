"""Pages rendered by a browser, with a crawl's manners.

Modules: `opening` (a browser for a run), `pages` (an answer rendered), `pieces` (what pages ask for besides: fetched, kept,
bounded), `turns` (when a host is asked for them), `rules` (what robots.txt says of them). Like workers they change nothing of
the crawl's state: they look at what it knows of hosts, and what they asked of which host comes back with the result.
"""
