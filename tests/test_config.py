"""The settings: what is read, what is refused and in which words, and that text and hash keep their promises."""

import dataclasses
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlkit.config import (
    SETTINGS,
    USER_AGENT,
    VERSION,
    Change,
    Config,
    ScopeMode,
    Setting,
    ValueKind,
    changed_config,
    find_setting,
    format_value,
    parse_duration,
    parse_resolve,
    parse_size,
    product_token_of,
    read_value,
    settings_hash,
    to_toml,
    to_values,
)
from crawlkit.errors import ConfigError, ExitStatus

PROFILES = Path(__file__).resolve().parent.parent / "config"

patterns = st.lists(st.text(min_size=1).filter(str.strip).map(re.escape), max_size=3)
resolves = st.lists(st.sampled_from(["*.test=127.0.0.1", "a.test=127.0.0.1:80", "*=[::1]:8080", "b=[::1]"]), max_size=3)
limits = st.none() | st.integers(1, 2**53 - 1)
configs = st.builds(
    Config,
    workers=st.integers(1, 10**6),
    timeout=st.floats(0.001, 1e9),
    scope=st.sampled_from(ScopeMode),
    include=patterns,
    exclude=patterns,
    max_depth=limits,
    max_pages=limits,
    max_time=st.none() | st.floats(0.001, 1e9),
    max_body=st.integers(1, 2**53 - 1),
    delay=st.floats(0, 1e9) | st.integers(0, 10**6).map(lambda ms: ms / 1000),
    robots=st.booleans(),
    user_agent=st.from_regex(r"[!-~]([ -~]{0,40}[!-~])?", fullmatch=True),
    contact=st.sampled_from(["", "me@a.test", "https://a.test/bot?x=1"]),
    resolve=resolves,
    proxy=st.sampled_from([None, "http://proxy.test:3128", "https://[::1]"]),
    proxy_auth=st.sampled_from([None, "env:A", "file:/a b/c"]),
)


@pytest.mark.parametrize(
    ("key", "raw", "value"),
    [
        ("workers", "4", 4),
        ("workers", " 4 ", 4),
        ("workers", 4, 4),
        ("timeout", "500ms", 0.5),
        ("timeout", "9ms", 0.009),
        ("timeout", "2h", 7200.0),
        ("timeout", "1.5m", 90.0),
        ("timeout", "10", 10.0),
        ("timeout", 10, 10.0),
        ("timeout", 0.25, 0.25),
        ("delay", 0, 0.0),
        ("max_body", "10MiB", 10 * 1024**2),
        ("max_body", "1.5k", 1536),
        ("max_body", "1MB", 10**6),
        ("max_body", 512, 512),
        ("max_depth", "0", 0),
        ("max_depth", "none", None),
        ("max_depth", "", None),
        ("max_time", " None ", None),
        ("robots", "off", False),
        ("robots", "YES", True),
        ("robots", "0", False),
        ("robots", 1, True),
        ("robots", False, False),
        ("scope", "Domain", ScopeMode.DOMAIN),
        ("include", r"\.html$", (r"\.html$",)),
        ("include", "a\nb\n", ("a", "b")),
        ("include", ["a", "b"], ("a", "b")),
        ("include", "", ()),
        ("resolve", ["*.test=127.0.0.1:80"], ("*.test=127.0.0.1:80",)),
        ("resolve", "a.test=[::1]:8080", ("a.test=[::1]:8080",)),
        ("resolve", "a.test=2001:db8::1", ("a.test=2001:db8::1",)),
        ("proxy", " HTTP://Proxy.test:03128/ ", "http://proxy.test:3128"),
        ("proxy", "https://[2001:DB8::0:1]", "https://[2001:db8::1]"),
        ("proxy", "none", None),
        ("proxy_auth", " env:PROXY_SECRET ", "env:PROXY_SECRET"),
        ("proxy_auth", "file:/run/secret file", "file:/run/secret file"),
        ("user_agent", "me/1.0 (+https://me.test)", "me/1.0 (+https://me.test)"),
        ("contact", " me+crawl@mail.a.test ", "me+crawl@mail.a.test"),
        ("contact", "https://[::1]:8080/who?a=b#c", "https://[::1]:8080/who?a=b#c"),
        ("contact", "http://a.test", "http://a.test"),
        ("contact", "", ""),
        ("contact", "none", ""),
        ("max_crawl_delay", "2m", 120.0),
        ("max_retry_after", "0", 0.0),
    ],
)
def test_a_value_is_read_from_text_toml_and_python(key: str, raw: object, value: object) -> None:
    read = read_value(SETTINGS[key], raw)
    assert read == value
    assert type(read) is type(value)
    assert read_value(SETTINGS[key], read) == value


@pytest.mark.parametrize(
    ("key", "raw", "expected"),
    [
        ("workers", "0", "a whole number, 1 or more"),
        ("workers", -1, "1 or more"),
        ("workers", "four", "a whole number"),
        ("workers", "1_0", "a whole number"),
        ("workers", "", "a whole number"),
        ("workers", "none", "a whole number"),
        ("workers", 4.0, "a whole number"),
        ("workers", True, "a whole number"),
        ("workers", None, "a value"),
        ("workers", "9" * 5000, "a whole number"),
        ("workers", 2**53, "at most 9007199254740991"),
        ("workers", 10**400, "at most"),
        ("max_depth", "-1", "a whole number, 0 or more, or none"),
        ("max_pages", 0, "1 or more, or none"),
        ("timeout", "0", "a duration like 500ms, 10s, 5m or 2h, 1ms or more"),
        ("timeout", "10 parsecs", "a duration like"),
        ("timeout", float("inf"), "at most 36500d"),
        ("timeout", float("nan"), "a duration like"),
        ("timeout", 10**400, "a duration like"),
        ("timeout", "inf", "a duration like"),
        ("timeout", "9" * 400, "at most 36500d"),
        ("delay", -0.5, "0s or more"),
        ("delay", True, "a duration like"),
        ("max_body", "0", "a size like 512KiB, 10MiB or 1GiB, 1B or more"),
        ("max_body", "ten", "a size like"),
        ("max_body", "9" * 400, "at most"),
        ("max_body", 1.5, "a size like"),
        ("robots", "maybe", "on or off"),
        ("robots", 2, "on or off"),
        ("robots", 1.0, "on or off"),
        ("scope", "hots", "host, domain, prefix or any (the nearest is 'host')"),
        ("scope", 3, "host, domain, prefix or any"),
        ("user_agent", "", "printable ASCII"),
        ("user_agent", "a\r\nX-Evil: 1", "printable ASCII"),
        ("user_agent", "краулер", "printable ASCII"),
        ("user_agent", 3, "printable ASCII"),
        ("contact", "me", "an e-mail address or an http(s) URL"),
        ("contact", "me@", "an e-mail address"),
        ("contact", "@a.test", "an e-mail address"),
        ("contact", "a@b@c", "an e-mail address"),
        ("contact", "Me <me@a.test>", "an e-mail address"),
        ("contact", "me@a.test\r\nX-Evil: 1", "an e-mail address"),
        ("contact", "me@a.test, you@a.test", "an e-mail address"),
        ("contact", "https://", "an http(s) URL"),
        ("contact", "ftp://a.test/", "an http(s) URL"),
        ("contact", "https://a.test/)", "without parentheses"),
        ("contact", "https://a.test/\\", "without parentheses"),
        ("contact", "https://a.test/a b", "an http(s) URL"),
        ("contact", "https://a.test/ü", "an http(s) URL"),
        ("contact", None, "a value"),
        ("contact", 3, "an e-mail address"),
        ("max_crawl_delay", "-1", "a duration"),
        ("include", "(", "a regular expression (missing )"),
        ("exclude", "[[:alpha:]]x", "a regular expression (Possible nested set"),
        ("exclude", "a{99999999999999}", "a regular expression"),
        ("exclude", [""], "text that is not empty"),
        ("exclude", ["\udcff"], "text that is not empty"),
        ("exclude", [1], "text that is not empty"),
        ("exclude", 1, "a list of texts"),
        ("resolve", "a.test", "GLOB=ADDR[:PORT]"),
        ("resolve", "a.test=localhost", "GLOB=ADDR[:PORT]"),
        ("resolve", "a.test=[::1", "IPv6 in brackets"),
        ("resolve", "a.test=[127.0.0.1]", "IPv6 in brackets"),
        ("resolve", "a.test=127.0.0.1:0", "the port is not between 1 and 65535"),
        ("resolve", "a.test=127.0.0.1:65536", "the port is not between 1 and 65535"),
        ("resolve", "=127.0.0.1", "GLOB=ADDR[:PORT]"),
        ("resolve", "a b=127.0.0.1", "GLOB=ADDR[:PORT]"),
    ],
)
def test_a_wrong_value_is_refused_in_one_line_with_key_expectation_and_value(key: str, raw: object, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_value(SETTINGS[key], raw)
    text = str(caught.value)
    assert text.startswith(f"{key}: expected ")
    assert expected in text
    assert ", not " in text
    assert "\n" not in text
    assert len(text) < 400
    assert caught.value.exit_status is ExitStatus.USAGE


@given(st.text() | st.floats() | st.integers() | st.booleans() | st.lists(st.text()) | st.none() | st.binary())
def test_whatever_is_given_a_value_is_read_or_refused_with_a_config_error(raw: object) -> None:
    for setting in SETTINGS.values():
        try:
            value = read_value(setting, raw)
        except ConfigError:
            continue
        assert read_value(setting, value) == value
        text = format_value(setting.kind, value)
        assert setting.repeatable or read_value(setting, text) == value


@pytest.mark.parametrize("kind", ValueKind)
def test_every_kind_of_value_has_a_reader(kind: ValueKind) -> None:
    with pytest.raises(ConfigError, match="key: expected"):
        read_value(Setting("key", kind, Change.FREE, "help", default=1), object())


def test_a_config_made_in_python_is_checked_and_made_regular() -> None:
    config = Config(max_depth=2, scope="domain", include=["a"], timeout=3)  # type: ignore[arg-type]
    assert config.max_depth == 2
    assert config.scope is ScopeMode.DOMAIN
    assert config.include == ("a",)
    assert type(config.timeout) is float
    assert hash(config) == hash(dataclasses.replace(config))
    with pytest.raises(ConfigError, match="workers: expected a whole number, 1 or more, not 0"):
        Config(workers=0)
    with pytest.raises(ConfigError, match="max_depth"):
        dataclasses.replace(config, max_depth=-1)


def test_the_defaults_pass_their_own_checks_and_stay_what_the_table_says() -> None:
    assert {key: getattr(Config(), key) for key in SETTINGS} == {key: s.default for key, s in SETTINGS.items()}


def test_from_values_takes_dashes_and_refuses_what_is_unknown_or_given_twice() -> None:
    assert Config.from_values({"max-depth": "3", "delay": 0}) == Config(max_depth=3, delay=0.0)
    assert Config.from_values({}) == Config()
    with pytest.raises(ConfigError, match="unknown setting 'max_dept'; the nearest known one is 'max_depth'"):
        Config.from_values({"max_dept": 3})
    with pytest.raises(ConfigError, match="max_depth: given twice"):
        Config.from_values({"max-depth": 3, "max_depth": 3})


def test_an_unknown_key_is_named_on_one_line_whatever_it_holds() -> None:
    with pytest.raises(ConfigError) as caught:
        find_setting("a\nb" * 1000)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@given(configs)
def test_toml_text_and_stored_values_read_back_as_the_same_settings(config: Config) -> None:
    assert Config.from_values(tomllib.loads(to_toml(config))) == config
    assert Config.from_values(to_values(config)) == config


@pytest.mark.parametrize("pattern", [r"it's\.html", "\x7f", r"\x7f'", '"\\\\"', "a\tb", "a\nb\\.c", "ü\\.\U0001f600", "''"])
def test_any_pattern_survives_as_a_toml_string(pattern: str) -> None:
    config = Config(include=(pattern,))
    assert Config.from_values(tomllib.loads(to_toml(config))) == config


def test_toml_text_is_readable() -> None:
    config = Config(timeout=0.5, delay=90.0, max_time=7200.0, max_body=1024**3, include=(r"\.html$",))
    lines = to_toml(config).splitlines()
    for line in (
        'timeout = "500ms"',
        'delay = "90s"',
        'max_time = "2h"',
        'max_body = "1GiB"',
        r"include = ['\.html$']",
        'max_depth = "none"',
        "robots = true",
        'scope = "host"',
        "# Obey robots.txt.",
    ):
        assert line in lines


def test_stored_values_are_plain_json_in_base_units() -> None:
    values = to_values(Config(include=("a",), scope=ScopeMode.ANY))
    assert values["include"] == ["a"]
    assert type(values["scope"]) is str
    assert values["max_body"] == 10 * 1024**2
    assert list(values) == list(SETTINGS)


@pytest.mark.parametrize("key", SETTINGS)
def test_the_hash_changes_with_what_decides_the_report_and_with_nothing_else(key: str) -> None:
    setting = SETTINGS[key]
    others: dict[ValueKind, Any] = {
        ValueKind.COUNT: 7,
        ValueKind.DURATION: 7.0,
        ValueKind.SIZE: 7,
        ValueKind.SWITCH: not setting.default,
        ValueKind.TEXT: "other/1",
        ValueKind.CONTACT: "me@a.test",
        ValueKind.SCOPE: "any",
        ValueKind.PATTERNS: ("x",),
        ValueKind.RESOLVES: ("*=127.0.0.1",),
        ValueKind.NETWORKS: ("10.0.0.0/8",),
        ValueKind.HEADERS: ("X: 1",),
        ValueKind.CREDENTIALS: ("a.example=env:A",),
        ValueKind.EXTRACTS: ("a=h1",),
        ValueKind.PLUGINS: ("a.py",),
        ValueKind.PROXY: "http://proxy.test:3128",
        ValueKind.GROUPING: "address",
        ValueKind.SECRET: "env:A",
    }
    changed = settings_hash(Config.from_values({key: others[setting.kind]})) != settings_hash(Config())
    assert changed == (setting.change is not Change.FREE)


def test_the_hash_is_the_same_in_every_process() -> None:
    assert settings_hash(Config(user_agent="a/1")) == settings_hash(Config(user_agent="a/1"))
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", settings_hash(Config()))


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (ValueKind.DURATION, 0.0, "0s"),
        (ValueKind.DURATION, 86400.0, "1d"),
        (ValueKind.DURATION, 5400.0, "90m"),
        (ValueKind.DURATION, 0.0015, "0.0015s"),
        (ValueKind.DURATION, 1e-7, "0.0000001s"),
        (ValueKind.SIZE, 1000, "1000B"),
        (ValueKind.SIZE, 3 * 1024**2, "3MiB"),
        (ValueKind.COUNT, None, "none"),
    ],
)
def test_values_are_shown_in_their_largest_whole_unit(kind: ValueKind, value: object, text: str) -> None:
    assert format_value(kind, value) == text


@given(st.floats(0, 1e9))
def test_a_duration_shown_reads_back_exactly(value_s: float) -> None:
    assert parse_duration(format_value(ValueKind.DURATION, value_s)) == value_s


@given(st.integers(0, 2**53 - 1))
def test_a_size_shown_reads_back_exactly(value_bytes: int) -> None:
    assert parse_size(format_value(ValueKind.SIZE, value_bytes)) == value_bytes


def test_a_resolve_rule_splits_into_glob_address_and_port() -> None:
    assert parse_resolve("*.test=127.0.0.1") == ("*.test", "127.0.0.1", None)
    assert parse_resolve("*=[::1]:8080") == ("*", "::1", 8080)
    assert parse_resolve("*=[2001:DB8::0:1]") == parse_resolve("*=2001:DB8::0:1") == ("*", "2001:db8::1", None)


@pytest.mark.parametrize("name", ["polite", "own-site", "archive", "broad"])
def test_a_profile_says_whom_it_is_for_and_loads(name: str) -> None:
    text = (PROFILES / f"{name}.toml").read_text()
    assert text.startswith("# For ")
    assert Config.from_values(tomllib.loads(text)) != Config()


def test_profiles_are_what_their_names_say() -> None:
    def load(name: str) -> Config:
        return Config.from_values(tomllib.loads((PROFILES / f"{name}.toml").read_text()))

    assert load("polite").delay > Config().delay
    assert (load("own-site").delay, load("own-site").host_concurrency) == (0.0, 8)
    assert load("archive").max_body > Config().max_body
    assert (load("broad").scope, load("broad").workers) == (ScopeMode.ANY, 64)
    assert all(load(name).robots for name in ("polite", "own-site", "archive", "broad"))


@pytest.mark.parametrize(
    ("user_agent", "token"), [("me-bot/1.0", "me-bot"), ("crawlkit/1 (+u)", "crawlkit"), ("1st", "crawlkit")]
)
def test_the_product_token_is_the_user_agents_first_word(user_agent: str, token: str) -> None:
    assert Config(user_agent=user_agent).product_token() == token


@pytest.mark.parametrize("contact", ["me@a.test", "https://a.test/bot"])
def test_a_contact_is_added_to_the_default_user_agent_and_to_no_other(contact: str) -> None:
    sent = Config(contact=contact).sent_user_agent()
    assert sent == f"{USER_AGENT.removesuffix(')')}; {contact})"
    assert Config(user_agent=sent).sent_user_agent() == sent
    assert Config(contact=contact, user_agent="me/1.0 (mine)").sent_user_agent() == "me/1.0 (mine)"
    assert Config(contact=contact).product_token() == "crawlkit"


def test_without_a_contact_the_user_agent_is_sent_as_set() -> None:
    assert Config().sent_user_agent() == USER_AGENT
    assert Config(user_agent="me/1.0").sent_user_agent() == "me/1.0"


def test_a_crawl_of_an_older_version_keeps_its_user_agent_and_its_contact() -> None:
    old = USER_AGENT.replace(VERSION, "0.0.9")
    assert Config(user_agent=old, contact="me@a.test").sent_user_agent() == f"{old.removesuffix(')')}; me@a.test)"


@pytest.mark.parametrize(("contact", "sent"), [("me@a.test", "me@a.test"), ("https://a.test/bot", None), ("", None)])
def test_only_an_e_mail_address_is_sent_as_from(contact: str, sent: str | None) -> None:
    assert Config(contact=contact).from_address() == sent


@pytest.mark.parametrize(("user_agent", "token"), [("A-Bot_x/2", "A-Bot_x"), ("*", None), ("", None), ("1bot", None)])
def test_a_product_token_is_what_a_user_agent_begins_with(user_agent: str, token: str | None) -> None:
    assert product_token_of(user_agent) == token


def test_the_longest_crawl_delay_is_frozen_and_the_longest_retry_after_is_not() -> None:
    assert changed_config(Config(), {"max_retry_after": "1h"}).max_retry_after == 3600
    for change in ({"max_crawl_delay": "1h"}, {"contact": "me@a.test"}):
        with pytest.raises(ConfigError, match="frozen when the crawl began"):
            changed_config(Config(), change)
