"""`--help` of commands with many options, in sections."""

from collections.abc import Mapping
from types import MappingProxyType

import click

SECTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Crawl": ("inputs", "directory", "since", "config_file", "changes", "retry_failed"),
        "Partitions": ("partitions", "engine", "ray_address"),
        "Scope": ("scope", "include", "exclude", "sitemaps", "plugin"),
        "Limits": (
            "max_depth", "max_pages", "max_pages_per_host", "max_time", "max_body", "max_links", "max_sitemap_urls",
            "min_free_disk",
        ),
        "Traps": (
            "max_url_length", "max_path_repeats", "max_param_repeats", "max_params", "template_budget",
        ),
        "Manners": (
            "delay", "host_concurrency", "group_by", "max_crawl_delay", "max_retry_after", "robots", "user_agent", "contact",
        ),
        "Network": (
            "workers", "timeout", "retries", "resolve", "allow_private", "header", "auth", "proxy", "proxy_auth", "http2",
            "insecure",
        ),
        "Records": (
            "extract", "near_duplicates", "text", "anchors", "render", "warc", "warc_size", "checkpoint_interval",
        ),
        "Output": (
            "exit_zero", "quiet", "verbose", "log_format", "progress", "ui", "metrics", "otel", "as_json", "origin", "defaults",
        ),
    }
)  # fmt: skip
"""The sections in their order, and the names of the parameters in each."""


class SectionedCommand(click.Command):
    """A command whose help lists its options in sections; what has none stands under Other."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, each where it belongs."""
        rows: dict[str, list[tuple[str, str]]] = {}
        places = {name: (title, place) for title, names in SECTIONS.items() for place, name in enumerate(names)}
        options = sorted(self.get_params(ctx), key=lambda option: places.get(option.name or "", ("", 0))[1])
        for option in options:
            record = option.get_help_record(ctx)
            if record is not None:
                rows.setdefault(places.get(option.name or "", ("Other", 0))[0], []).append(record)
        for title in (*SECTIONS, "Other"):
            if title in rows:
                with formatter.section(title):
                    formatter.write_dl(rows[title])
