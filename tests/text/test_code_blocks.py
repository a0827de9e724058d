"""Fenced blocks as CommonMark reads them, and which of them is the program."""

from __future__ import annotations

import time

import pytest

from podium.text.code_blocks import FencedBlock, fenced_blocks, is_program, last_block, last_program

B = "```"
P = "a = input()\nprint(a)\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"{B}python\n{P}{B}", [FencedBlock("python", P)]),
        (f'{B} Python3 title="a.py"\n{P}{B}', [FencedBlock("python3", P)]),
        (f"{B}{{.python .numberLines}}\n{P}{B}", [FencedBlock("python", P)]),
        (f"{B}\n{P}{B}\n", [FencedBlock("", P)]),
        (f"~~~py\n{P}~~~", [FencedBlock("py", P)]),
        (f"~~~ py `x`\n{P}~~~", [FencedBlock("py", P)]),
        (f"~~~\n{B}\n{P}{B}\n~~~", [FencedBlock("", f"{B}\n{P}{B}\n")]),
        (f"`{B}md\n{B}python\n{P}{B}\n`{B}", [FencedBlock("md", f"{B}python\n{P}{B}\n")]),
        (f"{B}py\n{P}{B}``", [FencedBlock("py", P)]),
        (f"{B}py\n{P}", [FencedBlock("py", P)]),
        (f"   {B}py\n   a()\n     b\n c\n   {B}", [FencedBlock("py", "a()\n  b\nc\n")]),
        (f"    {B}py\n    a()\n    {B}", []),
        (f"1. So:\n\n   - As here:\n\n        {B}py\n        a()\n        {B}", [FencedBlock("py", "a()\n")]),
        (f"- {B}py\n  a()\n  {B}\nEnd.", [FencedBlock("py", "a()\n")]),
        (f"* x\n\nNo list.\n\n    {B}py\n    a()\n    {B}", []),
        (f"<answer>{B}py\n{P}{B}</answer>", [FencedBlock("py", P)]),
        (f"{B}py\r\na()\r\n{B}\r\n", [FencedBlock("py", "a()\r\n")]),
        (f"{B}py\n'''\n{B}\nx\n{B}\n'''\n{P}{B}", [FencedBlock("py", f"'''\n{B}\nx\n{B}\n'''\n{P}")]),
        (
            f"{B}py\n(\n{B}\nIt prints\n{B}text\n5\n{B}",
            [FencedBlock("py", "(\n"), FencedBlock("text", "5\n")],
        ),
        (f"{B}py\n(\n{B}\nIt prints\n{B}\n5\n{B}", [FencedBlock("py", "(\n"), FencedBlock("", "5\n")]),
        (f"Say {B}a{B} or\n{B}b{B}\n", []),
        (f"{B}\n \n{B}", []),
        ("", []),
    ],
)
def test_blocks_are_read_as_commonmark_says(text: str, found: list[FencedBlock]) -> None:
    assert fenced_blocks(text) == found


@pytest.mark.parametrize(
    "text",
    [
        f"{B}python\n{P}{B}\nIt prints\n{B}\nprint(5)\n{B}",
        f"{B}py\nold()\n{B}\n{B}Python\n{P}{B}\n{B}bash\necho 2 | python a.py\n{B}",
        f"{B}\n{P}{B}\nIt prints\n{B}\n5\n{B}",
        f"{B}\n{P}{B}\n{B}\nInput: 2\nOutput: 5\n{B}",
        f"{B}\n{P}{B}\n{B}text\nNot a program.\n{B}",
        f"{B}cpp\nint x;\n{B}\n{B}\nNo.\n{B}\n{B}code\n{P}{B}",
        f"{B}json\n{{}}\n{B}\n~~~\n{P}",
    ],
)
def test_the_program_is_the_last_python_block_else_the_last_that_is_python(text: str) -> None:
    assert last_program(text) == P


def test_without_any_python_the_last_block_counts() -> None:
    assert last_program(f"{B}c\nint x;\n{B}\n{B}c\nint y;\n{B}") == "int y;\n"
    assert last_program("no block") is None
    assert last_block(f"{B}json\n1\n{B}\n{B}text\nx\n{B}", {"json"}) == "1\n"


@pytest.mark.parametrize("text", ["5", "Paris", "x = 1", "Output: 5", "1, 2", "(", "\0", ""])
def test_words_and_values_are_no_program(text: str) -> None:
    assert not is_program(text)


def test_blocks_are_found_in_time_proportional_to_the_text() -> None:
    started = time.process_time()
    for text in (f"{B}python\n(\n" + f"{B}\n" * 15_000, f"{B}python\n(\n{B}\n" * 6_000, "- " * 15_000):
        fenced_blocks(text)
        fenced_blocks(text * 2 + f"\n{B}py\n(")
    assert time.process_time() - started < 10
