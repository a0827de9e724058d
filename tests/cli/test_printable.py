import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cli.printable import counted, dollars, printable, seconds, shorten

ANY_TEXT = st.text(st.characters())


@given(ANY_TEXT)
def test_printable_passes_no_terminal_control_characters(text):
    for letter in printable(text):
        assert letter in "\n\t\u200c\u200d" or unicodedata.category(letter) not in {
            "Cc",
            "Cf",
            "Cs",
            "Zl",
            "Zp",
        }


@given(ANY_TEXT)
def test_printable_is_idempotent(text):
    assert printable(printable(text)) == printable(text)


@given(ANY_TEXT, st.integers(1, 50))
def test_a_shortened_text_is_one_line_within_its_limit(text, limit):
    short = shorten(text, limit)
    assert len(short) <= limit
    assert "\n" not in short


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, 'quotes' [red]tags[/red]", "plain text, 'quotes' [red]tags[/red]"),
        ("\x1b[2J\x07", "␛[2J␇"),
        ("a\r\nb\rc", "a\nb␍c"),
        ("\x9b31m", "\\x9b31m"),
        ("safe\u202egnp.exe", "safe\\u202egnp.exe"),
        ("non\u00a0breaking", "non breaking"),
        ("héllo 漢字 👩‍👧", "héllo 漢字 👩‍👧"),
        ("\ud800", "\\ud800"),
    ],
)
def test_printable_escapes_control_characters(text, shown):
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (0, "$0"),
        (0.00012345, "$0.00012"),
        (0.012, "$0.012"),
        (0.5, "$0.50"),
        (3.2, "$3.20"),
        (1234.5, "$1,234.50"),
    ],
)
def test_money_has_two_digits_that_matter(amount, shown):
    assert dollars(amount) == shown


@pytest.mark.parametrize(
    ("duration", "shown"), [(0.0004, "0.4 ms"), (0.012, "12 ms"), (1.254, "1.25 s"), (83.04, "83.0 s")]
)
def test_durations_have_a_unit_that_suits_them(duration, shown):
    assert seconds(duration) == shown


def test_counted_nouns_are_singular_or_plural():
    assert [counted(n, "call") for n in (0, 1, 1203)] == ["0 calls", "1 call", "1,203 calls"]
