"""Where to connect: argument, environment, NATS context, localhost, in this order."""

from __future__ import annotations

import json
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from jskv_saver._nats.settings import DEFAULT_ADDRESS, Settings, resolve
from jskv_saver.errors import InvalidRequestError


class Home:
    """A configuration folder and an environment."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.env: dict[str, str] = {"XDG_CONFIG_HOME": str(path)}

    def context(self, name: str, *, select: bool = False, **fields: Any) -> None:
        folder = self.path / "nats" / "context"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.json").write_text(json.dumps(fields))
        if select:
            (self.path / "nats" / "context.txt").write_text(f"{name}\n")

    def resolve(self, servers: Any = None, **options: Any) -> Settings:
        return resolve(servers, options, environment=self.env)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def identity(settings: Settings) -> dict[str, Any]:
    return {k: v for k, v in settings.options.items() if k != "name"}


def test_localhost_without_anything(home: Home) -> None:
    settings = home.resolve()
    assert settings.servers == (DEFAULT_ADDRESS,)
    assert identity(settings) == {}


def test_the_connection_has_a_name(home: Home) -> None:
    settings = resolve(role="saver", environment=home.env)
    start, _, host = settings.options["name"].partition("@")
    assert start.startswith("jskv_saver/")
    assert start.endswith(" saver")
    assert host == socket.gethostname()
    assert home.resolve(name="mine").options["name"] == "mine"


def test_argument_before_environment_before_context(home: Home) -> None:
    home.context("c", select=True, url="nats://context:1")
    assert home.resolve().servers == ("nats://context:1",)
    home.env["NATS_URL"] = "nats://environment:2"
    assert home.resolve().servers == ("nats://environment:2",)
    assert home.resolve("nats://argument:3").servers == ("nats://argument:3",)


@pytest.mark.parametrize(
    "given", ["nats://a:1, nats://b:2", ["nats://a:1", "nats://b:2"]]
)
def test_several_servers(home: Home, given: Any) -> None:
    assert home.resolve(given).servers == ("nats://a:1", "nats://b:2")


def test_the_selected_context_keeps_to_its_own_server(home: Home) -> None:
    home.context("c", select=True, url="nats://context:1", user="u", password="p")
    assert identity(home.resolve()) == {"user": "u", "password": "p"}
    # Its credentials are not for other servers.
    assert identity(home.resolve("nats://argument:3")) == {}
    home.env["NATS_URL"] = "nats://environment:2"
    assert identity(home.resolve()) == {}


def test_a_context_named_in_the_environment(home: Home) -> None:
    home.context("selected", select=True, url="nats://selected:1", token="s")
    home.context("named", url="nats://named:1", user="u", password="p")
    home.env["NATS_CONTEXT"] = "named"
    settings = home.resolve()
    assert settings.servers == ("nats://named:1",)
    assert identity(settings) == {"user": "u", "password": "p"}
    home.env["NATS_URL"] = "nats://environment:2"
    settings = home.resolve()
    assert settings.servers == ("nats://environment:2",)
    assert identity(settings) == {"user": "u", "password": "p"}


def test_environment_identity_replaces_the_contexts(home: Home) -> None:
    home.context("c", select=True, url="nats://c:1", user="u", password="p", creds="f")
    home.env["NATS_TOKEN"] = "t"
    assert identity(home.resolve()) == {"token": "t"}


def test_environment(home: Home) -> None:
    home.env |= {"NATS_USER": "u", "NATS_PASSWORD": "p"}
    assert identity(home.resolve()) == {"user": "u", "password": "p"}
    home.env = {"NATS_CREDS": "~/x.creds"}
    assert identity(home.resolve()) == {
        "user_credentials": str(Path("~/x.creds").expanduser())
    }
    home.env = {"NATS_NKEY": "/x.nk"}
    assert identity(home.resolve()) == {"nkeys_seed": "/x.nk"}


@pytest.mark.parametrize(
    "option", [{"user": "a", "password": "b"}, {"token": "x"}, {"nkeys_seed_str": "S"}]
)
def test_an_identity_given_as_option_stands_alone(
    home: Home, option: dict[str, str]
) -> None:
    home.env |= {"NATS_USER": "u", "NATS_PASSWORD": "p"}
    assert identity(home.resolve(**option)) == option


def test_an_identity_in_the_address_stands_alone(home: Home) -> None:
    home.env |= {"NATS_USER": "u", "NATS_PASSWORD": "p"}
    assert identity(home.resolve("nats://me:secret@host:4222")) == {}


def test_options_pass_through(home: Home) -> None:
    settings = home.resolve("a", ping_interval=7, inbox_prefix="_INBOX_x")
    assert identity(settings) == {"ping_interval": 7, "inbox_prefix": "_INBOX_x"}


def test_an_unknown_option_is_refused(home: Home) -> None:
    with pytest.raises(InvalidRequestError, match="usre"):
        home.resolve(usre="x")


def test_a_context_with_domain_and_prefixes(home: Home) -> None:
    home.context(
        "c",
        select=True,
        url="nats://a:1,nats://b:2",
        jetstream_domain="leaf",
        jetstream_api_prefix="JSD.API",
        inbox_prefix="_INBOX_me",
        tls_first=True,
        nkey="/seed",
        description="text",
        color_scheme="red",
    )
    settings = home.resolve()
    assert settings.servers == ("nats://a:1", "nats://b:2")
    assert (settings.domain, settings.api_prefix) == ("leaf", "JSD.API")
    assert identity(settings) == {
        "inbox_prefix": "_INBOX_me",
        "tls_handshake_first": True,
        "nkeys_seed": "/seed",
    }


@pytest.mark.parametrize("name", ["missing", "../x", "a/b", ".."])
def test_a_context_that_is_not_there(home: Home, name: str) -> None:
    home.env["NATS_CONTEXT"] = name
    with pytest.raises(InvalidRequestError, match="context"):
        home.resolve()
    # It is not read when the address is given.
    home.resolve("nats://a:1")


@pytest.mark.parametrize("text", ["{", "[]", '"x"', ""])
def test_a_damaged_context(home: Home, text: str) -> None:
    home.context("c", select=True)
    (home.path / "nats" / "context" / "c.json").write_text(text)
    with pytest.raises(InvalidRequestError, match="context"):
        home.resolve()


@pytest.mark.parametrize("field", ["nsc", "socks_proxy"])
def test_a_context_that_needs_more_than_we_have(home: Home, field: str) -> None:
    home.context("c", select=True, url="nats://a:1", **{field: "x"})
    with pytest.raises(InvalidRequestError, match=field):
        home.resolve()


def test_a_missing_certificate_is_an_error(home: Home) -> None:
    home.env["NATS_CA"] = "/nowhere/ca.pem"
    with pytest.raises(InvalidRequestError, match="nowhere"):
        home.resolve()


@pytest.mark.parametrize(
    ("address", "shown", "reason"),
    [
        ("nats://localhost:99999", "nats://localhost:99999", "its port cannot be read"),
        ("localhost:x", "localhost:x", "its port cannot be read"),
        ("nats://localhost:0", "nats://localhost:0", "its port is 0"),
        ("nats://tok@h:99999", "nats://h:99999", "its port cannot be read"),
        ("nats://u:pa/ss@h:4222", "nats://h:4222", "its port cannot be read"),
        ("/tmp/foo.db", "/tmp/foo.db", "it names no host"),
        ("data/foo.db", "data/foo.db", "no path"),
        (":memory:", ":memory:", "it names no host"),
        ("nats://", "nats://", "it names no host"),
        ("nats://[::1", "nats://[::1", "its host cannot be read"),
        ("nats://my host", "nats://my host", "a space"),
        ("http://h:4222", "http://h:4222", "its scheme is 'http', not one of"),
        ("natss://h", "natss://h", "'natss', not one of nats, tls, ws, wss"),
        ("NATS://h", "NATS://h", "'NATS', not one of nats, tls, ws, wss"),
    ],
)
@pytest.mark.parametrize("source", ["argument", "environment", "context"])
def test_an_address_that_is_none_is_named(
    home: Home, address: str, shown: str, reason: str, source: str
) -> None:
    given = [address] if source == "argument" else None
    if source == "environment":
        home.env["NATS_URL"] = address
    elif source == "context":
        home.context("c", select=True, url=address)
    with pytest.raises(InvalidRequestError) as caught:
        home.resolve(given)
    text = str(caught.value)
    assert text.startswith(f"{shown!r} is no address of a NATS server: ")
    assert reason in text
    assert "nats://localhost:4222" in text
    assert "tok" not in text
    assert "pa/" not in text


@pytest.mark.parametrize("given", [7, Path("/tmp/foo.db"), [7], b"nats://h"])
def test_an_address_is_text(home: Home, given: Any) -> None:
    with pytest.raises(InvalidRequestError, match="nats://localhost:4222"):
        home.resolve(given)


@pytest.mark.parametrize(
    "address",
    ["h", "h:4222", "nats://h", "nats://h:4222/", "nats://u:p@h", "nats://[::1]:4222"],
)
def test_addresses_that_are_legal(home: Home, address: str) -> None:
    settings = home.resolve(address)
    assert settings.servers == (address,)
    assert not settings.secure


def test_websockets_need_a_package_and_their_own_list(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(InvalidRequestError, match="pip install aiohttp"):
        home.resolve("wss://h/path")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: True)
    assert home.resolve("wss://h/path").servers == ("wss://h/path",)
    with pytest.raises(InvalidRequestError, match="mixed"):
        home.resolve("ws://h,nats://h")


def test_tls_in_any_address_means_tls(home: Home) -> None:
    settings = home.resolve("nats://a,tls://b")
    assert settings.secure
    context = settings.options["tls"]
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    mine = ssl.create_default_context()
    settings = home.resolve("tls://b", tls=mine)
    assert settings.options["tls"] is mine
    assert home.resolve("nats://a", tls=mine).secure
    assert "tls" not in home.resolve("nats://a").options
