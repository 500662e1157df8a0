"""crawlkit: a crawler that can be killed at any moment, and whose report is the same all the same."""
