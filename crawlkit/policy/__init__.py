"""What policy answers, in the order a URL meets it: pure functions and frozen values, no await, no clock, no file.

1.  Is it a URL, and which one? `urls`
2.  Is it in scope? `scope`
3.  Does it look like a trap? `traps`
4.  May we fetch it? `robots`
5.  When may its host be asked? `politeness`
6.  Is what came a page we read? `content_type`
7.  In which encoding is it written? `charset`
8.  What does it link to? `links` (and `skim`, where its tree would cost too much: `tree_cost`)
9.  What else does the answer say? `facts`
10. If it is a sitemap, what does it name? `sitemaps` (with `markup` and `lastmod`)
11. Is its text new to its like? `novelty`
12. Shall we ask again? `retry`
13. What follows from all this? `disposition`
"""
