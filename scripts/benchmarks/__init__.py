"""The benchmarks behind `scripts/bench`: each figure one line of JSON, each peer in the same run.

`suite` names the benches and their options, `figures` prints lines, `processes` runs what is measured in processes of its own.

    fetch            a crawl of a static site on loopback: crawlkit, Scrapy, wget2 and the floor; with `static_site`, `servers`,
                     `static_server`, `peers`, `floor` and `scrapy_spider`
    crawl_state      what the benches below start from: `prepare` makes a crawl of so many URLs on so many hosts
    frontier         the coordinator without a network, on the page mix of `page_mix`
    memory           anonymous memory while it runs
    seen_set         the seen-set by layers
    resuming         from `crawlkit resume` to the first request
    searching        an index of generated texts, asked
    live_loop        `checkpoint` and `durability`: the real loop over a transport without sockets

Modules that are named `..._part` are programs: they measure in a process of their own and print one JSON object.
"""
