"""Crawls in partitions, read and steered."""
