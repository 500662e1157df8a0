"""One crawl in several partitions: each a coordinator of its own, in a process of its own; a driver that starts and ends them.

`exchange` carries letters between partitions, `waves` tells when all is done, `shares` deals out the limit on pages: these are
synchronous and know no process. `desk` is one partition's part in it, `member` runs it in its process, `conductor` is the
driver's part. `founding` makes a crawl in partitions, `moves` changes how many there are, `processes` runs partitions as
processes of this machine, `on_ray` as actors of a Ray cluster; `places` is how either finds their directories.
"""
