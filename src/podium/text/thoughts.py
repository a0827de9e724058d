"""Divides what a model wrote into its thoughts and its answer, by the marks with which models fence their thoughts.

The rules:
- A block of thoughts counts at the beginning of the text, and again after each block. Later it counts where its opening
  mark begins a line, ends a line or follows the end of a sentence, outside of code fences and quotes. So an answer that
  talks about `<think>` tags stays whole.
- A closing mark without an opening one closes a thought that the chat template opened: all before it is thought. It
  does not count in quotes, as the partner of an opening mark that did not count, or inside JSON. In a code fence it
  counts only alone on its line.
- A thought that no mark closes was cut off: the rest is thought, and there is no answer.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

_TAG = (
    r"(?:[a-z]{1,12}[:_])?"
    r"(?:thinking|think|thoughts|thought_process|thought|antthinking|(?:reasoning_)?scratchpad|inner_monologue|reasoning)"
)
_HARMONY_HEAD = r"(?:<\|start\|>assistant)?<\|channel\|>"
_FINAL_WORD = "assistantfinal"
"""What is left of harmony's marks before an answer where a server strips them."""
_HARMONY_FINAL = (
    rf"{_HARMONY_HEAD}final[^<]{{0,60}}(?:<\|constrain\|>[^<]{{0,20}})?<\|message\|>|{_FINAL_WORD}"
)


class _Marks(NamedTuple):
    opening: str
    closing: str
    """What ends a thought that was opened."""
    lone: str
    """What ends a thought that the chat template opened."""


def _pair(opening: str, closing: str) -> _Marks:
    return _Marks(opening, closing, closing)


_FAMILIES = (
    _pair(rf"<{_TAG}(?:\s[^<>]{{0,200}})?(?<!/)>", rf"</{_TAG}\s{{0,20}}>"),
    _pair(r"\[think\]", r"\[/think\]"),
    _Marks(
        rf"{_HARMONY_HEAD}(?:analysis|commentary)[^<]{{0,60}}(?:<\|constrain\|>[^<]{{0,20}})?<\|message\|>",
        rf"<\|(?:end|call|return)\|>|{_HARMONY_FINAL}",
        _HARMONY_FINAL,
    ),
    _pair(r"<\|channel>thought", r"<channel\|>"),
    _pair(r"<unused94>(?:thought)?", r"<unused95>"),
    _pair(r"<\|start_thinking\|>", r"<\|end_thinking\|>"),
    _pair(r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),
    _pair(r"◁think▷", r"◁/think▷"),
    _pair(r"<\|(?:think|thinking|thought)\|>", r"<\|/(?:think|thinking|thought)\|>"),
    _pair(r"\[begin reasoning\]", r"\[begin final response\]"),
)
"""Tags of Qwen, DeepSeek, Claude, Seed and others; Mistral's; gpt-oss's harmony format; Gemma 4's and 3's; Cohere's;
OpenThinker's; Kimi-VL's; those in pipes; Apriel's, whose template opens the thought."""

_WRAPPING = (
    r"<\|(?:end|call|return)\|>|<\|start\|>assistant|<\|(?:start|end)_response\|>|"
    rf"<\|(?:begin|end)_of_solution\|>|\[end final response\]|<{_TAG}\s{{0,20}}/>"
)
"""Marks around an answer, dropped where thoughts were marked."""

_ANY = re.compile(
    r"(?=[<\[◁a])(?:"
    + "|".join(
        [f"(?P<o{i}>{marks.opening})|(?P<c{i}>{marks.lone})" for i, marks in enumerate(_FAMILIES)]
        + [f"(?P<wrapping>{_WRAPPING})"]
    )
    + ")",
    re.IGNORECASE,
)
_INSIDE = tuple(re.compile(f"(?P<o>{m.opening})|(?P<c>{m.closing})", re.IGNORECASE) for m in _FAMILIES)
_PARTIAL_MARK = re.compile(
    rf"(?:</?{_TAG}\s[^<>]{{0,200}}|<[/|]{{0,2}}[\w:]{{0,40}}[|/]?|\[/?[a-z ]{{0,20}}|◁/?[a-z]{{0,5}}"
    r"|<\|(?:start|channel)\|>(?:[^<]{0,60}<\|(?:channel|constrain)\|>){0,2}[^<]{0,60}(?:<\|?[a-z]{0,10}\|?)?"
    r"|(?:<\|channel>|<unused94>)[a-z]{0,7})\Z",
    re.IGNORECASE,
)
"""The beginning of a mark at the end of the text."""
_BEGUN_WORD = re.compile("|".join(f"{_FINAL_WORD[:end]}\\Z" for end in range(1, len(_FINAL_WORD))))
_MARK_WORDS = (
    *("think", "thought", "reasoning", "channel", "<unused9", "scratchpad", "monologue", "final response"),
    _FINAL_WORD,
)
"""Every mark has one of them in some case, and few texts do."""
_MAX_MARK_CHARS = 300
"""Characters of the longest mark (approximate)."""

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?:(?<!\.\w)[.!?…]|[。！？])[\"')\]”’]*\s*\Z")
_QUOTES = "`\"'“”‘’«»"
_LINE = 64
"""Characters kept of each end of the line before a mark."""


def split_thoughts(text: str) -> tuple[str, str]:
    """The thoughts in `text`, without their marks and with an empty line between blocks, and the answer, which is
    `text` itself if there are none."""
    if not _may_have_marks(text) or _ANY.search(text) is None or _is_json(text):
        return "", text
    splitter = ThoughtSplitter(hold=True)
    pieces = (splitter.add(text), splitter.end())
    return "".join(thoughts for thoughts, _ in pieces), "".join(answer for _, answer in pieces)


def without_thoughts(text: str) -> str:
    """The answer in `text`."""
    return split_thoughts(text)[1]


class ThoughtSplitter:
    """Does what `split_thoughts` does with a text that comes in pieces. Text that may be the beginning of a mark waits.
    With `hold`, the answer waits for the end of the text; else it is passed on as it comes, and a closing mark without
    an opening one comes too late for what was passed on."""

    def __init__(self, *, hold: bool = False) -> None:
        self.opened_by_template = False
        """Whether a closing mark came without an opening one, so that all before it was thought."""
        self._hold = hold
        self._pending = ""
        self._family: int | None = None
        self._marked = False
        self._held: list[str] = []
        # Thoughts.
        self._thought = False
        self._block_begun = False
        self._gap = self._last = ""
        # The answer.
        self._lead: list[str] = []
        self._begun = False
        self._data = False
        self._skip = False
        self._line = ""
        self._fence: str | None = None
        self._mentions = 0

    def add(self, text: str) -> tuple[str, str]:
        """The thoughts and the part of the answer that `text` makes certain."""
        self._pending += text
        return self._advance(final=False)

    def release(self) -> str:
        """Stop holding the answer back, and return what was held."""
        self._hold = False
        held = "".join(self._held)
        self._held.clear()
        return held

    def end(self) -> tuple[str, str]:
        """The rest: no more text follows."""
        thoughts, answer = self._advance(final=True)
        if not self._marked:
            answer = "".join(self._held) + answer + "".join(self._lead)
        else:
            answer = "".join(self._held) + answer
        self._held, self._lead = [], []
        return thoughts, answer

    def _advance(self, *, final: bool) -> tuple[str, str]:
        thoughts: list[str] = []
        answer: list[str] = []
        text, position = self._pending, 0
        while True:
            marks = _ANY if self._family is None else _INSIDE[self._family]
            mark = marks.search(text, position)
            if mark is None or (not final and _is_open(text, mark)):
                break
            self._put(text[position : mark.start()], thoughts, answer)
            self._take(mark, text[mark.end() : mark.end() + 1], thoughts, answer)
            position = mark.end()
        end = len(text)
        if not final:
            begun = _PARTIAL_MARK.search(text, max(position, end - _MAX_MARK_CHARS))
            word = _BEGUN_WORD.search(text, max(position, end - len(_FINAL_WORD))) if self._hold else None
            end = min([end, *(start.start() for start in (mark, begun, word) if start is not None)])
        self._put(text[position:end], thoughts, answer)
        self._pending = text[end:]
        return "".join(thoughts), "".join(answer)

    def _take(self, mark: re.Match[str], after: str, thoughts: list[str], answer: list[str]) -> None:
        """Take one mark; `after` is the character after it, if there is one."""
        group = mark.lastgroup or ""
        if self._family is not None:
            if group == "o":
                # A second closing mark may follow, for the second opening one.
                self._hold = True
            elif self._is_quoted(after, self._gap[-1:] or self._last):
                self._think(mark.group(), thoughts)
            else:
                self._family = None
                self._skip = not self._begun or not self._line.strip() or self._line[-1:].isspace()
            return
        if group == "wrapping":
            if not self._marked:
                self._say(mark.group(), answer)
            return
        if group[0] == "o":
            if self._opens(after):
                self._marked, self._family = True, int(group[1:])
                self._block_begun = False
                self._lead.clear()
            else:
                self._mentions += 1
                self._say(mark.group(), answer)
        elif self._closes(after):
            self._close_template(thoughts)
        else:
            self._mentions = max(0, self._mentions - 1)
            self._say(mark.group(), answer)

    def _opens(self, after: str) -> bool:
        if not self._begun:
            return True
        if self._data or self._fence is not None or self._line[-1:] in tuple(_QUOTES):
            return False
        return not self._line.strip() or after in ("\n", "\r") or bool(_SENTENCE_END.search(self._line))

    def _closes(self, after: str) -> bool:
        begins_line = not self._line.strip()
        if self._data:
            return False
        if self._fence is not None:
            return begins_line and after in ("", "\n", "\r") and not self._mentions
        if self._is_quoted(after, self._line[-1:]):
            return False
        return begins_line or not self._mentions

    @staticmethod
    def _is_quoted(after: str, before: str) -> bool:
        return bool(after and before) and after in _QUOTES and before in _QUOTES

    def _close_template(self, thoughts: list[str]) -> None:
        if self._held or self._begun:
            self.opened_by_template = True
        self._marked, self._skip = True, True
        before = "".join([*self._lead, *self._held])
        self._lead.clear()
        self._held.clear()
        self._block_begun = False
        self._think(before, thoughts)
        if self._hold:
            self._begun = False
        self._line, self._fence, self._mentions = "", None, 0

    def _put(self, text: str, thoughts: list[str], answer: list[str]) -> None:
        if self._family is None:
            self._say(text, answer)
        else:
            self._think(text, thoughts)

    def _think(self, text: str, thoughts: list[str]) -> None:
        if not self._block_begun:
            text = text.lstrip()
            if not text:
                return
            if self._thought:
                thoughts.append("\n\n")
            self._gap = ""
            self._thought = self._block_begun = True
        body = text.rstrip()
        if body:
            thoughts.append(self._gap + body)
            self._gap, self._last = "", body[-1]
        self._gap = (self._gap + text[len(body) :])[:_MAX_MARK_CHARS]

    def _say(self, text: str, answer: list[str]) -> None:
        if self._skip:
            text = text.lstrip()
        if not text:
            return
        if not self._begun:
            if text.isspace():
                self._lead.append(text)
                return
            text = "".join([*self._lead, text])
            self._lead.clear()
            # The text is passed on before it can be known whether it is JSON.
            self._data = not self._hold and not self._marked and text.lstrip()[:1] in ("{", "[")
        self._begun, self._skip = True, False
        (self._held if self._hold else answer).append(text)
        *lines, last = (self._line + text).rsplit("\n", 1)
        for line in lines:
            self._follow_fences(line)
        self._line = last if len(last) <= 2 * _LINE else last[:_LINE] + last[-_LINE:]

    def _follow_fences(self, lines: str) -> None:
        for match in _FENCE.finditer(lines):
            fence, info = match.group(1), match.group(2)
            if self._fence is None:
                if fence[0] == "~" or "`" not in info:
                    self._fence = fence
            elif fence.startswith(self._fence) and not info.strip():
                self._fence = None


def _may_have_marks(text: str) -> bool:
    """Whether it has a word of a mark. One regular expression of all words would take forty times as long."""
    lowered = text.lower()
    return any(map(lowered.__contains__, _MARK_WORDS))


def _is_open(text: str, mark: re.Match[str]) -> bool:
    """Whether the text after `text` may change the mark, or whether it counts."""
    if len(text) - mark.start() > _MAX_MARK_CHARS:
        return False
    return mark.end() == len(text) or _PARTIAL_MARK.match(text, mark.start()) is not None


def _is_json(text: str) -> bool:
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
