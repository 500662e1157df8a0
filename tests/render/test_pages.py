"""What becomes of documents in a browser, all of them shown by one."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import pytest

from crawlkit.rendering import Aside, Document, Piece, Rendered, Rendering, Unrendered, Wish
from tests.render.chromium import PROGRAM, needs_renderer

pytestmark = needs_renderer

HOME = "http://a.test/x/"
MOST_BYTES = 100_000

ADDED = "<script>document.title='made'; document.write('<a href=made>1</a>')</script>"
PIECES = {
    "http://a.test/app.js": Piece(200, (("content-type", "text/javascript"),), b"document.title = 'by app'"),
    "http://a.test/data": Piece(200, (("content-type", "application/json"),), b'"data"'),
    "http://b.test/secret": Piece(200, (), b"secret"),
    "http://b.test/shared": Piece(200, (("access-control-allow-origin", "*"),), b"shared"),
    "http://a.test/gone": Piece(404, (), b"gone"),
}


FETCHED = {
    "/data": '200 "data"',
    "/gone": "404 gone",
    "http://b.test/secret": "refused",
    "http://b.test/shared": "200 shared",
    "http://b.test/none": "refused",
    "ftp://a.test/": "refused",
}
FETCHING = """<script>
const fetched = (url, how) => fetch(url, how).then(async r => r.status + ' ' + await r.text()).catch(() => 'refused');
Promise.all([...%s.map(url => fetched(url)), fetched('/data', {method: 'POST', body: 'x'})])
  .then(all => document.title = all.join('|'))
</script>"""
"""A page that says in its title what each of `FETCHED` came to, and then a POST."""

DOCUMENTS = {
    "plain": "<!doctype html><title>plain</title><a href=y>y</a>",
    "writes": ADDED,
    "script": "<script src=/app.js></script>",
    "refused script": "<title>kept</title><script src=/none.js></script>",
    "fetches": FETCHING % [*FETCHED],
    "goes": "<title>kept</title><script>location = '/there?q'</script><p>rest",
    "goes later": "<title>kept</title><script>setTimeout(() => location.replace('/there'), 100)</script>",
    "refreshes": "<title>kept</title><meta http-equiv=refresh content='0; /there'>",
    "renames itself": "<script>history.pushState({}, '', '/y/z?w#f')</script>",
    "is in the way of people": "<script>alert(1); open('/x'); open('about:blank'); print(); document.title = 'past'</script>",
    "floods": "<script>for (let i = 0; i < 300; i++) open('about:blank'); document.title = 'past'</script>",
    "is in the way of names": "<form name=documentElement></form><img name=doctype><title>kept</title>",
    "never ends": "<script>for (;;);</script>",
    "ends never later": "<script>setTimeout(() => { for (;;); }, 0)</script>",
    "never rests": "<script>setInterval(() => fetch('/data'), 250); document.title = 'busy'</script>",
    "is large": "<body><script>document.body.append('x'.repeat(200000))</script>",
    "stores": "<script>document.cookie = 'a=1'; localStorage.a = 1; document.title = 'stored'</script>",
    "looks": "<script>document.title = document.cookie + '|' + localStorage.a + '|' + navigator.userAgent</script>",
    "has surrogates": r"<script>document.title = '\ud800 and more'</script>",
    "replaces itself": "<script>setTimeout(() => location = 'about:blank', 50)</script>",
    "replaces itself later": "<script>setTimeout(() => location = URL.createObjectURL(new Blob(['x'])), 50)</script>",
    "is cut off": "<title>cut</title><p",
    "is nothing": "",
}

TIMEOUT_S = {"never ends": 0.5, "ends never later": 0.5, "never rests": 6.0}
"""Of those whose time runs out; the others have more than they need."""


class Asked:
    """What documents asked for."""

    def __init__(self) -> None:
        self.wishes: list[Wish] = []

    async def grant(self, wish: Wish, aside: Aside) -> Piece | None:
        self.wishes.append(wish)
        return PIECES.get(wish.url)


Shown = dict[str, tuple[Rendered | Unrendered, list[str]]]


@pytest.fixture(scope="module")
def shown() -> Shown:
    """All documents, rendered, with what each asked for."""
    from crawlkit.render.browser import Renderer  # noqa: PLC0415  (its package is an extra)

    async def show_all() -> Shown:
        renderer = Renderer(PROGRAM, "test/1.0", MOST_BYTES, 4)
        await renderer.open()

        async def show(name: str) -> tuple[Rendered | Unrendered, list[str]]:
            asked = Asked()
            document = Document(HOME, DOCUMENTS[name].encode())
            found = await renderer.render(document, asked.grant, TIMEOUT_S.get(name, 30.0))
            return found, sorted({wish.url for wish in asked.wishes})

        try:
            return dict(zip(DOCUMENTS, await asyncio.gather(*map(show, DOCUMENTS)), strict=True))
        finally:
            await renderer.aclose()

    return asyncio.run(show_all())


def rendered(shown: Shown, name: str) -> Rendered:
    found, _ = shown[name]
    assert isinstance(found, Rendered)
    return found


def title(shown: Shown, name: str) -> str:
    return rendered(shown, name).markup.decode().partition("<title>")[2].partition("</title>")[0]


def test_a_page_without_scripts_stays_what_it_is(shown: Shown) -> None:
    expected = '<!DOCTYPE html><html><head><title>plain</title></head><body><a href="y">y</a></body></html>'
    assert rendered(shown, "plain") == Rendered(expected.encode(), HOME)


def test_what_scripts_make_is_there(shown: Shown) -> None:
    assert title(shown, "writes") == "made"
    assert b'<a href="made">' in rendered(shown, "writes").markup


@pytest.mark.parametrize(
    ("name", "expected", "asked"),
    [
        ("script", "by app", ["http://a.test/app.js"]),
        ("refused script", "kept", ["http://a.test/none.js"]),
        ("is in the way of people", "past", []),
        ("floods", "past", []),
        ("is in the way of names", "kept", []),
        ("is cut off", "cut", []),
        ("is nothing", "", []),
    ],
)
def test_what_a_page_asks_for_is_asked_and_no_more(shown: Shown, name: str, expected: str, asked: list[str]) -> None:
    assert (title(shown, name), shown[name][1]) == (expected, asked)


def test_scripts_get_what_is_granted_and_other_origins_let_them_have(shown: Shown) -> None:
    assert title(shown, "fetches").split("|") == [*FETCHED.values(), "refused"]
    urls = {f"http://a.test{url}" if url[0] == "/" else url for url in FETCHED if not url.startswith("ftp:")}
    assert shown["fetches"][1] == sorted(urls)


@pytest.mark.parametrize(
    ("name", "target"),
    [("goes", "http://a.test/there?q"), ("goes later", "http://a.test/there"), ("refreshes", "http://a.test/there")],
)
def test_where_a_page_would_go_is_told_and_not_followed(shown: Shown, name: str, target: str) -> None:
    found = rendered(shown, name)
    assert (found.target, found.url, title(shown, name), shown[name][1]) == (target, HOME, "kept", [])


def test_a_page_may_call_itself_something_else(shown: Shown) -> None:
    assert rendered(shown, "renames itself").url == "http://a.test/y/z?w#f"


@pytest.mark.parametrize("name", ["never ends", "ends never later"])
def test_scripts_that_never_end_are_given_up(shown: Shown, name: str) -> None:
    assert shown[name][0] == Unrendered(Rendering.TIMEOUT)


@pytest.mark.parametrize("name", ["replaces itself", "replaces itself later"])
def test_a_page_that_puts_something_else_in_its_place_is_given_up(shown: Shown, name: str) -> None:
    assert shown[name] == (Unrendered(Rendering.REFUSED), [])


def test_a_page_that_never_rests_is_read_when_its_time_is_over(shown: Shown) -> None:
    assert title(shown, "never rests") == "busy"


def test_a_large_page_is_cut(shown: Shown) -> None:
    found = rendered(shown, "is large")
    assert (len(found.markup), found.cut) == (MOST_BYTES, True)


def test_nothing_is_carried_from_page_to_page(shown: Shown) -> None:
    assert (title(shown, "stores"), title(shown, "looks")) == ("stored", "|undefined|test/1.0")


def test_what_is_no_text_does_no_harm(shown: Shown) -> None:
    assert title(shown, "has surrogates").endswith(" and more")


# What must not leave --------------------------------------------------------------------------------------------------

LEAVES = """
<link rel=dns-prefetch href=//127.0.0.1:TCP><link rel=preconnect href=http://127.0.0.1:TCP>
<link rel=prefetch href=http://127.0.0.1:TCP/prefetch><link rel=icon href=http://127.0.0.1:TCP/icon>
<img src=http://127.0.0.1:TCP/image><iframe src=http://127.0.0.1:TCP/frame></iframe><video src=http://127.0.0.1:TCP/video></video>
<embed src=http://127.0.0.1:TCP/embed><object data=http://127.0.0.1:TCP/object></object>
<style>@font-face { font-family: f; src: url(http://127.0.0.1:TCP/font) } body { font-family: f }</style><p>text
<script>
const at = 'http://127.0.0.1:TCP/', does = what => { try { what() } catch (error) {} };
does(() => new WebSocket('ws://127.0.0.1:TCP/socket'));
does(() => new EventSource(at + 'events'));
does(() => navigator.sendBeacon(at + 'beacon', 'x'));
does(() => navigator.serviceWorker.register('/worker.js'));
does(() => new SharedWorker(at + 'shared.js'));
does(() => new SharedWorker('data:text/javascript,fetch("http://127.0.0.1:TCP/of-shared")'));
does(() => new Worker('data:text/javascript,fetch("http://127.0.0.1:TCP/of-worker", {method: "POST"})'));
does(() => open(at + 'window'));
does(() => fetch(at + 'keepalive', {method: 'POST', keepalive: true, mode: 'no-cors'}));
does(() => new WebTransport('https://127.0.0.1:TCP/transport'));
does(() => document.querySelector('body').insertAdjacentHTML('beforeend', '<a ping=' + at + 'ping href=#x id=a>'));
does(() => document.querySelector('#a').click());
does(() => {
  const calls = new RTCPeerConnection({iceServers: [
    {urls: 'stun:127.0.0.1:UDP'}, {urls: 'turn:127.0.0.1:TCP?transport=tcp', username: 'a', credential: 'b'}]});
  calls.createDataChannel('x');
  calls.createOffer().then(offer => calls.setLocalDescription(offer));
});
does(() => { const form = document.createElement('form'); form.action = at + 'form'; form.method = 'post';
             document.body.append(form); form.submit() });
let times = 0;
const stay = () => times++ < 5 ? fetch('/data').finally(() => setTimeout(stay, 200)) : document.title = 'done';
stay();
</script>
"""


@contextmanager
def listening() -> Iterator[tuple[socket.socket, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        tcp.setblocking(False)
        udp.setblocking(False)
        yield tcp, udp


def test_nothing_leaves_the_browser_but_what_is_asked_for() -> None:
    from crawlkit.render.browser import Renderer  # noqa: PLC0415

    async def show(markup: str) -> tuple[Rendered | Unrendered, Asked]:
        renderer, asked = Renderer(PROGRAM, "test/1.0", MOST_BYTES, 1), Asked()
        await renderer.open()
        try:
            return await renderer.render(Document("http://a.test/", markup.encode()), asked.grant, 60.0), asked
        finally:
            await renderer.aclose()

    with listening() as (tcp, udp):
        ports = {"TCP": tcp.getsockname()[1], "UDP": udp.getsockname()[1]}
        markup = LEAVES
        for name, port in ports.items():
            markup = markup.replace(name, str(port))
        found, asked = asyncio.run(show(markup))
        with pytest.raises(BlockingIOError):
            tcp.accept()
        with pytest.raises(BlockingIOError):
            udp.recv(1)
    assert isinstance(found, Rendered)
    assert b"<title>done</title>" in found.markup
    assert {wish.url for wish in asked.wishes} <= {"http://a.test/data", f"http://127.0.0.1:{ports['TCP']}/shared.js"}
    assert all(msgspec.structs.asdict(wish)["accept"] for wish in asked.wishes)
