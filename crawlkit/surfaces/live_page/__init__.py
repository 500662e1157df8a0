"""The live page: a crawl at a glance in a browser, while it runs (`run --ui`) or at rest (`crawlkit ui`).

1. `access`: who may ask for what: the token, the names of the server, where an order comes from.
2. `at_rest`: what is shown of a crawl that does not run, read from its records.
3. `source`: what is shown, from a running crawl's socket (also within its own process) or from its directory. It blocks.
4. `partitioned`: the same of a crawl in partitions.
5. `answering`: the requests: the page, its events, explanations, orders.
6. `serving`: the server, for `run --ui` beside the crawl's loop and for `crawlkit ui`.
7. `page.html`, `page.css`, `page.js`: what the page is made of, beside what all pages share (`surfaces.pages`).

The crawl's loop does nothing for it but what `status` asks of it too: whatever blocks is done in threads of the server's own.
"""
