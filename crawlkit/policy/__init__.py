"""What policy answers, in the order a URL meets it: pure functions and frozen values, no await, no clock, no file.

1.  Is it a URL, and which one? `urls`
2.  Is it in scope? `scope`
3.  May we fetch it? `robots`
4.  When may its host be asked? `politeness`
5.  Is what came a page we read? `content_type`
6.  In which encoding is it written? `charset`
7.  What does it link to? `links`
8.  What else does the answer say? `facts`
9.  Shall we ask again? `retry`
10. What follows from all this? `disposition`
"""
