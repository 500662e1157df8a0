"""The report as one page for a browser, that needs nothing beside itself.

1. `figures`: what the charts show, counted in one walk over the records.
2. `writing`: the page as a stream of bytes: markup, style, the records as JSON, script.
3. `page.html`, `page.css`, `page.js`: what the page is made of, beside what all pages share (`surfaces.pages`).

Nothing of a crawled page is ever markup here: it is JSON in which no `<` stands, and the script shows it as text only. The
page's own policy (CSP) allows its one script and its one style by their digests and nothing from elsewhere.
"""
