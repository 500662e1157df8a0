"""`--metrics`: what a running crawl does, as Prometheus text over HTTP. Names and labels are part of the contract.

Labels are closed sets, never a URL or a host, so that the number of series does not grow with the crawl.
"""
