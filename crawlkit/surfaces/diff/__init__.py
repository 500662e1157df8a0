"""What differs between two crawls.

1. `sides`: one side of a comparison, a crawl directory or a JSON report, as a sorted stream.
2. `changes`: two such streams merged, and each difference as text or JSON.

Both sides are read once, one record at a time.
"""
