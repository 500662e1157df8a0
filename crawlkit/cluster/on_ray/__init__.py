"""Partitions as actors on Ray, which places, supervises and calls them. What is durable is in the partitions' directories.

`connecting` finds or starts Ray, `machines` finds which machine holds which partition, `engine` starts actors and talks with
them, `actor` is one partition in its process. Nothing here relies on Ray trying again: an actor that is gone is started by the
driver, which numbers and repeats what must not be lost; two of one partition keep each other out by the lock of its directory.

Only the option that asks for it imports this: Ray takes a second to import, and is an extra.
"""
