"""The template budget: how many URLs of one shape may be added before their pages have shown that they say something new.

Each template has credit, and each host some to spare. A new URL is paid from its template's credit, else from what the host
can spare: a template may draw no more than `template_budget` of that, and never more than three times what it leaves for the
others. A page whose text is new (`policy.novelty`) earns credit for its template, one for the template whose page led to it
and, while its template is young, one for the host; what leads no further (a redirect, a failure, what is not HTML) earns its
price back.

So templates that go on saying something new go on growing, listings live on what they list, and a calendar without end, a
space of session ids or of filters runs dry (`trap.template`). It costs pages of one shape without text of their own that are
found from page to page: galleries without captions, beyond the budget. What goes on for ever with new text it does not stop.
"""

from collections.abc import Iterable

from crawlkit.engine.abroad import Abroad
from crawlkit.model import Record
from crawlkit.policy.novelty import MEMORY_BYTES, is_fresh, own_shingles, remember, template_of
from crawlkit.policy.urls import host_of
from crawlkit.state.templates import Account, Templates

EARNED = 3
"""What a fresh page earns for its template, which so may go on growing while one page in three is fresh."""

LEFT_SHARE = 3

FEW_PAGES = 8
"""Up to so many pages a template is young, and they are compared with all young ones of the host: traps make many shapes."""


WELL_OFF = 256
"""Credit of a template from which on its pages are not looked at: so of an honest one that grows a third of them is. Such a
look is a tenth of what a page costs. A trap that became well off earns no more by it than it did before."""


MOST_DRY = 4_096
"""Templates that are remembered to have found no credit."""


def spare_at_first(most: int) -> int:
    """Return what a host can spare to begin with."""
    return most * (LEFT_SHARE + 1) // LEFT_SHARE


def may_draw(drawn: int, spare: int, most: int) -> bool:
    """Whether a template that drew so much may have one more of what its host can spare."""
    return drawn < min(most, LEFT_SHARE * spare)


class Budget:
    """Prices and earnings of the templates of one crawl. `most` is the most a template may draw, 0 for no limit.

    What a template of another partition earns goes `abroad`.
    """

    def __init__(self, templates: Templates, most: int, abroad: Abroad | None = None) -> None:
        self._abroad = abroad
        self._templates = templates
        self._most = most
        self._start = spare_at_first(most)
        self._kept_back = 0
        self.dry: set[str] = set()
        """Templates that found no credit since any was given: links to these are met by the hundred."""

    def pay(self, url: str) -> bool:
        """Take the price of adding `url`; False if there is no credit for it."""
        if not self._most:
            return True
        name = template_of(url)
        if name in self.dry:
            return False
        template = self._templates.get(name)
        if template.credit > self._kept_back:
            template.credit -= 1
        else:
            host = self.host(url)
            if not may_draw(template.drawn, host.credit, self._most):
                if len(self.dry) >= MOST_DRY:
                    self.dry.clear()
                self.dry.add(name)
                return False
            template.drawn += 1
            host.credit -= 1
            self._templates.changed(host)
        self._templates.changed(template)
        return True

    def keep_back(self, credit: int) -> None:
        """Leave `credit` of each template to links that wait, from now on."""
        if credit < self._kept_back:
            self.dry.clear()
        self._kept_back = credit

    def is_curious(self, url: str, via: str | None) -> bool:
        """Whether it matters if the page at `url` is fresh: to its own template, or to that of the page which led to it."""
        if not self._most:
            return False
        if self._templates.get(template_of(url)).credit < WELL_OFF:
            return True
        return via is not None and self._templates.get(template_of(via)).credit < WELL_OFF

    def earn(self, record: Record, sketch: tuple[int, ...] | None) -> bool:
        """Settle what a record earns; `sketch` is None for what leads no further, empty if not looked at.

        Whether its text is new.
        """
        if not self._most:
            return False
        template = self._templates.get(template_of(record.url))
        fresh = sketch is not None and len(sketch) > 0 and self._is_fresh(record.url, template, sketch)
        if fresh:
            if template.pages <= FEW_PAGES:
                self._add(self.host(record.url), 1)
            if record.via is not None and self._abroad is not None and self._abroad.is_foreign(record.via):
                self._abroad.earn(record.via)
            elif record.via is not None:
                leader = self._templates.get(template_of(record.via))
                if leader is not template:
                    self._add(leader, 1)
        if fresh or sketch is None:
            self._add(template, EARNED if fresh else 1)
        return fresh

    def reward(self, url: str) -> None:
        """Give the template of a page credit for having led to a page of another partition whose text is new."""
        if self._most:
            self._add(self._templates.get(template_of(url)), 1)

    def grant(self, urls: Iterable[str]) -> None:
        """Give the templates of `urls` the credit to add them all."""
        for url in urls:
            template = self._templates.get(template_of(url))
            template.credit += 1
            self._templates.changed(template)
        self.dry.clear()

    def _is_fresh(self, url: str, template: Account, sketch: tuple[int, ...]) -> bool:
        template.pages += 1
        host = self.host(url)
        if host.memory is None:
            host.memory = bytearray(MEMORY_BYTES)
        if template.memory is None and template.pages > FEW_PAGES:
            template.memory, template.before = bytearray(host.memory), host.before
        known = host if template.memory is None else template
        assert known.memory is not None
        own = own_shingles(sketch, known.before)
        fresh = is_fresh(own, known.memory)
        remember(own, known.memory)
        known.before = sketch
        known.unsaved_pages += 1
        self._templates.changed(known)
        return fresh

    def host(self, url: str) -> Account:
        """Return what the host of `url` has to spare, and which of its pages wait."""
        return self.account(host_of(url))

    def account(self, host: str) -> Account:
        """Return the same by the host's name."""
        return self._templates.get(host, self._start)

    def _add(self, account: Account, credit: int) -> None:
        raised = min(self._start, account.credit + credit)
        if raised > account.credit:
            account.credit = raised
            self._templates.changed(account)
            self.dry.clear()
