"""Site health: what the owner of a crawled site would mend.

1. `views`: the closed list of views, and what each yields.
2. `broken`, `orphans`, `redirects`, `titles`, `canonicals`, `duplicates`: one view each, a stream of rows in a fixed order.
3. `scratch`: the temporary database in which a view sorts what it cannot hold in memory.
4. `writing`: rows as text, JSON lines or CSV.

What a view yields is a function of the records alone. Memory does not grow with the crawl.
"""
