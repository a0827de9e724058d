"""The line of a key: wherever TOML lets it be, against what the parser makes of the same text."""

import time
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.config.toml import Where, find_line

TEXT = '''\
# A comment with [brackets], "quotes and an apostrophe: '
street = "Elm # no comment" # a comment
"a.b" = 'c = "d'
shape.width = 2
text = """
[not.a.header]
key = "no key" \\"""
"""""
list = [ # of tables
  { name = "x", tags = ["]", '['] },

  "last",
]
plain = QQQ
[[nor.this]]''QQQ

[table."with.dots".inner]
deep = { er = [1, 2] }
[[worker]]

name = "first"
limits.rpm = 1
[worker.price]
input = 1
[[worker]]
name = "second"
[[worker.part]]
size = 1
[[worker.part]]
size = 2
[worker.part.price]
output = 3
'''.replace("QQQ", "'''")


@pytest.mark.parametrize(
    ("where", "line"),
    [
        (("street",), 2),
        (("a.b",), 3),
        (("shape",), 4),
        (("shape", "width"), 4),
        (("text",), 5),
        (("list",), 9),
        (("list", 0, "tags", 1), 9),
        (("plain",), 14),
        (("table",), 17),
        (("table", "with.dots", "inner"), 17),
        (("table", "with.dots", "inner", "deep", "er"), 18),
        (("worker",), 19),
        (("worker", 0), 19),
        (("worker", 0, "name"), 21),
        (("worker", 0, "limits", "rpm"), 22),
        (("worker", 0, "price"), 23),
        (("worker", 0, "price", "input"), 24),
        (("worker", 1), 25),
        (("worker", 1, "name"), 26),
        (("worker", 1, "part", 0), 27),
        (("worker", 1, "part", 1), 29),
        (("worker", 1, "part", 1, "size"), 30),
        (("worker", 1, "part", 1, "price", "output"), 32),
        (("worker", 1, "missing"), 25),
        (("worker", 0, "price", "missing", "deeper"), 23),
        (("worker", 7), 19),
        (("missing",), None),
        ((), None),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_key_is_found_on_the_line_that_sets_it(where: Where, line: int | None, end: str) -> None:
    assert find_line(TEXT.replace("\n", end), where) == line


def test_empty_text_has_no_lines() -> None:
    assert find_line("", ("street",)) is None


def test_thousands_of_lines_and_long_values_take_no_time_to_speak_of() -> None:
    workers = "".join(f'[[worker]]\nname = "w{i}"\nlimits = {{ rpm = {i + 1} }}\n' for i in range(2000))
    long = "x\n" * 5000, "1,\n" * 5000
    text = f'{workers}text = """\n{long[0]}"""\nlist = [\n{long[1]}]\n[last]\nkey = 1\n'
    tomllib.loads(text)
    started = time.process_time()
    assert find_line(text, ("last", "key")) == text.count("\n")
    assert find_line(text, ("worker", 1999, "limits", "rpm")) == 6000
    assert time.process_time() - started < 20  # it takes 0.2; a parse for each line, minutes


_KEYS = st.sampled_from(["a", "b", "'c d'", '"e.f"', "g-1"])
_VALUES = st.sampled_from(
    [
        "1",
        '"# x"',
        "'[a]'",
        '"""\nb = 2\n"""',
        "'''\n[c]\n'''",
        "[\n1, # ]\n2 ]",
        "{ x = 1, y.z = '}' }",
        "[{ a = 1 }]",
    ]
)
_LINES = st.one_of(
    st.builds("{} = {}".format, st.builds(".".join, st.lists(_KEYS, min_size=1, max_size=3)), _VALUES),
    st.builds("[{}]".format, st.builds(".".join, st.lists(_KEYS, min_size=1, max_size=3))),
    st.builds("[[{}]]".format, st.builds(".".join, st.lists(_KEYS, min_size=1, max_size=2))),
    st.sampled_from(["", "# a = 1", "  # [b]"]),
)


@given(st.lists(_LINES, max_size=12))
def test_find_line_agrees_with_the_toml_parser(
    pieces: list[str],
) -> None:
    text = ""
    begins: dict[Where, int] = {}
    for piece in pieces:
        longer = f"{text}{piece}\n"
        try:
            tables = tomllib.loads(longer)
        except tomllib.TOMLDecodeError:
            continue
        for where in _ways(tables):
            begins.setdefault(where, text.count("\n") + 1)
        text = longer
    for where, line in begins.items():
        assert find_line(text, where) == line, (text, where)


def _ways(value: object, way: Where = ()) -> list[Where]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ways = [way] if way else []
    for key, inner in items:
        ways += _ways(inner, (*way, key))
    return ways
