"""When something was changed last, as sitemaps and feeds write it: W3C date and time, and RFC 822's in RSS."""

import re
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime

# https://www.w3.org/TR/NOTE-datetime, and what is met besides: a blank for the T, no zone (read as UTC), one without colon.
_W3C = re.compile(
    r"""([0-9]{4}) (?: -([0-9]{2}) (?: -([0-9]{2})
    (?: [Tt\ ]([0-9]{2}):([0-9]{2}) (?: :([0-9]{2}) (?: \.([0-9]{1,9}) )? )? \s* (Z|z|[+-][0-9]{2}:?[0-9]{2})? )? )? )?""",
    re.X,
)


def lastmod_utc(text: str) -> str | None:
    """Return the moment that `text` names, like `2014-06-03T10:30:00Z`, with milliseconds if it has a fraction; else None.

    A date alone means its start. In this form moments of one precision are in the order of their texts.
    """
    match = _W3C.fullmatch(text.strip())
    try:
        moment = _w3c(match) if match else parsedate_to_datetime(text)
        utc = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return utc.isoformat(timespec="milliseconds" if utc.microsecond else "seconds").replace("+00:00", "Z")


def _w3c(match: re.Match[str]) -> datetime:
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    return datetime(
        int(year),
        int(month or 1),
        int(day or 1),
        int(hour or 0),
        int(minute or 0),
        int(second or 0),
        int((fraction or "0").ljust(6, "0")[:6]),
        tzinfo=_zone(zone),
    )


def _zone(text: str | None) -> timezone:
    if text is None or text in "Zz":
        return UTC
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))
