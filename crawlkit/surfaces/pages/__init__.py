"""What the pages for browsers share: their style, their script's means, and how a page is put together.

`base.css` and `base.js` come before a page's own. A page allows its one script and its one style by their digests (CSP) and
nothing from elsewhere; text of crawled pages is shown by `textContent` alone and is never markup.
"""
