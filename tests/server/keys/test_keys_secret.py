"""Secrets, allowances, and the workers that a key may use."""

from __future__ import annotations

import hmac
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.errors import UsageError
from podium.server.keys import Caller
from podium.server.keys.caller import KeyAllowance
from podium.server.keys.key_store import NewKey, matches_digest, public_part


def test_a_key_has_256_random_bits_behind_a_public_beginning() -> None:
    made = [NewKey.generate() for _ in range(200)]
    assert len({secret.text for secret in made}) == 200
    for secret in made:
        assert secret.text.startswith(f"{secret.id}-")
        assert len(secret.text) == len("pk-3f9a1c2e-") + 43, "43 letters of 6 bits hold 256"
        assert public_part(secret.text) == secret.id
        assert matches_digest(secret.text, secret.digest)


def test_a_key_is_not_shown_by_printing_it() -> None:
    secret = NewKey.generate()
    assert secret.text not in repr(secret)
    assert secret.text[12:] not in repr(secret)


def test_one_letter_more_less_or_other_is_another_key() -> None:
    secret = NewKey.generate()
    for text in (secret.text[:-1], secret.text + "A", secret.text[:-1] + "!", secret.text.swapcase(), ""):
        assert not matches_digest(text, secret.digest)


def test_digests_are_compared_in_constant_time_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    really = hmac.compare_digest

    def compare(first: bytes, second: bytes) -> bool:
        compared.append((first, second))
        return really(first, second)

    secret = NewKey.generate()
    monkeypatch.setattr(hmac, "compare_digest", compare)
    assert matches_digest(secret.text, secret.digest)
    assert compared == [(secret.digest, secret.digest)]


@pytest.mark.parametrize(
    "text", ["", "pk-", "pk-3f9a1c2e", "sk-3f9a1c2e-" + "A" * 43, "pk-3f9a1c2e-" + "A" * 44]
)
def test_malformed_key_has_no_public_part(text: str) -> None:
    assert public_part(text) == ""


@pytest.mark.parametrize(
    ("text", "usd", "period"),
    [
        ("5/day", 5.0, "2026-03-01"),
        (" 20/month ", 20.0, "2026-03"),
        ("100", 100.0, ""),
        ("0.25/day", 0.25, "2026-03-01"),
        ("0", 0.0, ""),
        ("0.000000001", 1e-9, ""),
    ],
)
def test_allowance_has_a_day_a_month_or_no_period(text: str, usd: float, period: str) -> None:
    allowance = KeyAllowance.read(text)
    assert allowance.usd == usd
    assert allowance.period(datetime(2026, 3, 1, 23, 59, 59, tzinfo=UTC)) == period
    assert KeyAllowance.read(str(allowance)) == allowance


@pytest.mark.parametrize(
    "text",
    [
        "",
        "much",
        "-1",
        "5/week",
        "5/",
        "/day",
        "nan",
        "inf",
        "1e3",
        "5 / day",
        "1000000001",
        "٣",
        "5/day/day",
    ],
)
def test_malformed_allowance_is_refused_with_the_expected_form(text: str) -> None:
    with pytest.raises(UsageError, match="give dollars, up to 1,000,000,000, as 5/day, 20/month, or 100"):
        KeyAllowance.read(text)


NAMES = st.lists(st.sampled_from("abcdef"), unique=True)


@given(names=NAMES, allow=st.none() | NAMES, deny=NAMES)
def test_a_key_may_use_what_it_is_allowed_and_not_denied(
    names: list[str], allow: list[str] | None, deny: list[str]
) -> None:
    caller = Caller(allow=None if allow is None else tuple(allow), deny=tuple(deny))
    allowed = caller.allowed(names)
    assert list(allowed) == [name for name in names if name in allowed], "in order"
    assert set(allowed) == set(names) & set(names if allow is None else allow) - set(deny)
