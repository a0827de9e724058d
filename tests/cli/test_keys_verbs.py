"""`podium keys`: made, shown once, listed, removed; and what a server without keys may listen on."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from podium.errors import UsageError
from podium.server.keys import Keys, open_key_store
from podium.workers.chat.endpoint import is_loopback
from refused_commands import one_sentence

KEPT = Path("kept") / "keys.sqlite"


def test_a_key_is_printed_once_and_alone(podium):
    made = podium("keys", "add", "web")
    assert made.status == 0
    assert re.fullmatch(r"pk-[0-9a-f]{8}-[\w-]{43}\n", made.out)
    assert made.err == "The key of web: store it now; Podium keeps only a hash and cannot show it again.\n"
    assert made.out.strip() not in podium("keys", "list").out
    assert made.out.strip() not in podium("keys", "list", "--json").out
    assert KEPT.stat().st_mode & 0o777 == 0o600
    assert made.out[12:].strip().encode() not in KEPT.read_bytes()


def test_added_key_authenticates_its_caller(podium):
    key = podium(
        "keys", "add", "web", "--allow", "ada, bob", "--deny=cy", "--rpm", "5", "--admin"
    ).out.strip()

    async def caller():
        keys = Keys(open_key_store())
        try:
            return await keys.caller(f"Bearer {key}")
        finally:
            await keys.close()

    found = asyncio.run(caller())
    assert (found.name, found.admin, found.rpm) == ("web", True, 5)
    assert (found.allow, found.deny, found.allowance) == (("ada", "bob"), ("cy",), None)


def test_the_list_shows_what_keys_may_do_and_have_spent(podium):
    assert one_sentence(podium("keys", "list")).startswith("podium: There is no file of keys at ")
    key = podium("keys", "add", "web", "--budget-usd", "5/day", "--rpm", "60", "--deny", "opus").out.strip()
    podium("keys", "add", "my phone", "--admin")

    async def spend():
        keys = Keys(open_key_store())
        keys.spend_limit(await keys.caller(f"Bearer {key}")).settle(0.0, 0.25)
        await keys.close()

    asyncio.run(spend())
    heading, web, phone = podium("keys", "list").out.splitlines()
    assert heading.split() == [
        "name",
        "key",
        "added",
        "(UTC)",
        "rpm",
        "budget",
        "spent",
        "reserved",
        "workers",
    ]
    assert re.fullmatch(
        rf"web +{key[:11]}-\.\.\. +[\d-]+ [\d:]+ +60 +\$5/day +\$0\.25 +\$0 +all but opus", web
    )
    assert re.fullmatch(r"my phone \(admin\) +pk-\w{8}-\.\.\. +[\d-]+ [\d:]+ +- +- +- +- +all", phone)
    first, second = json.loads(podium("keys", "list", "--json").out)
    assert first.pop("added").endswith("+00:00")
    assert first == {
        "name": "web",
        "id": key[:11],
        "admin": False,
        "rpm": 60,
        "budget_usd": "5/day",
        "spent_usd": 0.25,
        "reserved_usd": 0.0,
        "allow": None,
        "deny": ["opus"],
    }
    assert (second["admin"], second["budget_usd"], second["spent_usd"]) == (True, None, None)


def test_a_key_is_removed_by_its_name(podium):
    podium("keys", "add", "web")
    podium("keys", "add", "phone")
    removed = podium("keys", "remove", "web")
    assert (removed.status, removed.out, removed.err) == (0, "", "The key of web is removed.\n")
    assert [key["name"] for key in json.loads(podium("keys", "list", "--json").out)] == ["phone"]
    assert "There is no key named 'web'" in one_sentence(podium("keys", "remove", "web"))
    podium("keys", "remove", "phone")
    assert podium("keys", "list").out == "There are no keys.\n"
    assert json.loads(podium("keys", "list", "--json").out) == []


@pytest.mark.parametrize(
    ("tokens", "says"),
    [
        (("web", "--budget-usd", "5/week"), "--budget-usd 5/week: give dollars"),
        (("web", "--budget-usd=-1"), "--budget-usd -1: give dollars"),
        (("web", "--rpm", "0"), "--rpm 0: give from 1 to 60000 requests a minute."),
        (("web", "--rpm", "60001"), "--rpm 60001: give from 1"),
        (("web", "--allow", "a,,b"), "--allow 'a,,b': give names of workers"),
        (("web", "--deny", ""), "--deny '': give names of workers"),
        (("",), "'' cannot be a key's name"),
        (("a\x1b[2Jb",), "'a␛[2Jb' cannot be a key's name"),
        (("x" * 65,), "cannot be a key's name: use up to 64 letters"),
        (("../web",), "'../web' cannot be a key's name"),
    ],
)
def test_a_key_that_cannot_be_made_is_refused_and_nothing_is_written(podium, tokens, says):
    assert says in one_sentence(podium("keys", "add", *tokens))
    assert not KEPT.exists()


def test_duplicate_key_name_is_refused(podium):
    podium("keys", "add", "web")
    assert "There is a key named 'web' already" in one_sentence(podium("keys", "add", "web", "--admin"))
    assert [key["admin"] for key in json.loads(podium("keys", "list", "--json").out)] == [False]


def test_keys_are_stored_beside_the_traces_of_the_server(podium):
    podium("keys", "add", "web", "--store", "there/traces.sqlite")
    assert Path("there/keys.sqlite").is_file()
    assert not KEPT.exists()


async def open_keys(host):
    keys = Keys(open_key_store())
    try:
        await keys.open(host)
    finally:
        await keys.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "::1", "[::1]", "127.3.2.1"])
def test_loopback_needs_no_key(host):
    assert is_loopback(host)
    asyncio.run(open_keys(host))


@pytest.mark.parametrize(
    "host",
    [
        "0.0.0.0",
        "::",
        "192.168.1.4",
        "example.com",
        "",
        "localhost.example.com",
        "127.0.0.1.nip.io",
        "2130706433",
    ],
)
def test_server_on_other_addresses_needs_a_key_and_names_keys_add(podium, host):
    assert not is_loopback(host)
    with pytest.raises(UsageError, match="make one with `podium keys add NAME`, with the same --store"):
        asyncio.run(open_keys(host))
    podium("keys", "add", "web")
    asyncio.run(open_keys(host))


def test_api_key_is_still_required_after_all_keys_were_deleted(podium):
    key = podium("keys", "add", "web").out.strip()

    async def come_in():
        keys = Keys(open_key_store())
        try:
            await keys.open("0.0.0.0")
            assert await keys.key_store.remove("web")
            keys._read_s = -1e9
            return await asyncio.gather(
                keys.caller(None), keys.caller(f"Bearer {key}"), return_exceptions=True
            )
        finally:
            await keys.close()

    assert [getattr(error, "status", None) for error in asyncio.run(come_in())] == [401, 401]
