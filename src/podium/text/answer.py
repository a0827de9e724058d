"""Extracts the final answer of a response, and normalises it for comparison.

Tools use it to compare workers' answers. It is no grader: it does not judge whether an answer is right.
"""

from __future__ import annotations

import re
import unicodedata

from podium.text.boxes import boxed_answer
from podium.text.thoughts import without_thoughts

ANSWER_WORD = (
    "antwoord|antwort|cevap|idahun|jawaban|jibu|odpowied[zź]|odpověď|respuesta|resposta|risposta|r[eé]ponse|svar|yanıt"
    "|đáp án|απάντηση|відповідь|ответ|תשובה|الإجابة|إجابة|الجواب|उत्तर|উত্তর|คำตอบ"
    "|答案|答え|答|正解|解答|回答|정답|답변|답"
)
"""The word "answer" in other languages, as a regular expression that ignores case."""
ANSWER_LINE = (
    rf"(?:[^\W\d_]+[ \t]){{0,2}}[^\W\d_]{{0,4}}(?:{ANSWER_WORD})[^\W\d_]{{0,4}}(?:[ \t][^\W\d_]+){{0,2}}"
    r"[ \t*_]*[:：]"
)
"""The beginning of a line that states an answer in another language: "La réponse finale :", "正确答案是："."""
_ANSWER = re.compile(
    rf"^[^\w\n]*+(?:(?:the |my )?(?:final )?answer[^\w\n:：]*[:：]|{ANSWER_LINE})\**[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
_OPENING, _CLOSING = re.compile("<answer>", re.IGNORECASE), re.compile("</answer>", re.IGNORECASE)
_BETWEEN = re.compile(r"\W*(?:(?:or|and|maybe|perhaps|also)\b\W*)*", re.IGNORECASE)
_BULLET, _OR = (
    re.compile(r"\s*(?:[-*•+]|\d{1,2}[.)])\s+\S"),
    re.compile(r"\s*(?:or|and)\s+\S{1,40}\s*$", re.IGNORECASE),
)
_VALUE = re.compile(r"\s*\w\S{0,40}\s*$")
_MAX_LIST_LINES = 50
_MAX_GAP_CHARS, _MAX_TAGS = 60, 20
"""Characters between two tags that stand side by side; and marks before a tag up to which others are looked for."""
_BOXED = "\\boxed{"
_FENCE = "```"
_BLOCK_MARKS = ((_FENCE, _FENCE), (r"\[", r"\]"), ("$$", "$$"))
"""The marks around a code block and a displayed formula."""
_BLOCK = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)
_BLOCK_MARK = re.compile(r"`{3,}\w*|\\[\[\]]|\$\$")
_FORMED = re.compile("([ª²³¹º¼-¾ʰ-ʸˠ-ˤᴬ-ᶿ⁰-ₜ⅐-⅟↉™℠ⱼⱽ]+)")


def final_answer(text: str) -> str | None:
    """The final answer in `text`, as written; None when there is no text.

    It is the last `Answer: ...` line or the last `<answer>...</answer>`, whichever begins later; else the last
    `\\boxed{...}`; else the last line that is not empty, or the code block or displayed formula that ends the text.
    Thoughts (`podium.text.thoughts`) do not count.
    """
    text = without_thoughts(text)
    start, stop, tag = find_tagged(text)
    line_start, line = _after_word(text, start, stop)
    named = (line, tag) if line_start > start else (tag, line)
    for candidate in (*named, boxed_answer(text, closed=True), _last_part(text)):
        answer = strip_markup(candidate or "")
        if answer and not _BLOCK_MARK.fullmatch(answer):
            return answer
    return None


def normalise(answer: str) -> str:
    """The answer without what does not distinguish texts: case, width, repeated and outer spaces, a final dot."""
    return " ".join(to_nfkc(answer).casefold().split()).rstrip(". ")


def to_nfkc(text: str) -> str:
    """The text in Unicode's form NFKC, in which full-width and other variants of a character are one. Superscripts,
    subscripts and fractions stay as they are: else `10²` would be `102`."""
    if text.isascii():
        return text
    return "".join(
        part if i % 2 else unicodedata.normalize("NFKC", part) for i, part in enumerate(_FORMED.split(text))
    )


def _after_word(text: str, start: int, stop: int) -> tuple[int, str | None]:
    """Position and text of the last `Answer:` line. Lines between `start` and `stop`, a tagged answer, do not count."""
    marks = [mark for mark in _ANSWER.finditer(text) if not start < mark.end() <= stop]
    return (marks[-1].start(), _stated(text[marks[-1].end() :].lstrip())) if marks else (-1, None)


def _stated(text: str) -> str:
    """The first line of a text, with the lines that go on with its list: `- red` and `- green`; `red,` and `green`; `5`
    and `or 6`."""
    if block := _BLOCK.match(text):
        return block[1]
    first, *others = text.split("\n", _MAX_LIST_LINES)
    stated = [first]
    for line in others:
        is_entry = _BULLET.match(line) and _BULLET.match(first)
        goes_on = stated[-1].rstrip().endswith(",") and _VALUE.match(line)
        if not (is_entry or goes_on or _OR.match(line)):
            break
        stated.append(line)
    return "\n".join(stated)


def find_tagged(text: str) -> tuple[int, int, str | None]:
    """Start, end and content of the last `<answer>...</answer>`; of two side by side, both contents, with "or"."""
    closing = _last(_CLOSING, text)
    opening = None if closing is None else _last(_OPENING, text[: closing.start()])
    if closing is None or opening is None:
        return -1, -1, None
    content = text[opening.end() : closing.start()]
    before = text[: opening.start()]
    beside = _last(_CLOSING, before[-_MAX_GAP_CHARS:])
    if beside and _BETWEEN.fullmatch(before[-_MAX_GAP_CHARS:], beside.end()):
        _, _, other = find_tagged(before) if before.count("<") < _MAX_TAGS else (0, 0, None)
        if other is not None and other.strip() != content.strip():
            content = f"{other.strip()} or {content.strip()}"
    return opening.start(), closing.end(), content


def _last(mark: re.Pattern[str], text: str) -> re.Match[str] | None:
    return next(reversed([*mark.finditer(text)]), None)


def tagged_answer(text: str) -> str | None:
    """The content of the last `<answer>...</answer>`."""
    return find_tagged(text)[2]


def _last_part(text: str) -> str:
    """The content of a code block or displayed formula that ends the text, else its last line that is not empty."""
    text = text.rstrip()
    for opening, closing in _BLOCK_MARKS:
        start = text.rfind(opening, 0, -len(closing)) if text.endswith(closing) else -1
        if start >= 0:
            content = text[start + len(opening) : -len(closing)]
            return content.partition("\n")[2] or content if opening == _FENCE else content
    return last_line(text)


def last_line(text: str) -> str:
    """The last line that is not empty."""
    return text.rstrip().rpartition("\n")[2]


def strip_markup(answer: str) -> str:
    """The answer without the markup that models put around it: emphasis, backticks, a box."""
    inner = answer.strip()
    for mark in ("**", "*", "`", "$"):
        count = inner.count(mark)
        if count == 1 or (count == 2 and inner.startswith(mark) and inner.endswith(mark)):
            inner = inner.removeprefix(mark).removesuffix(mark).strip()
    if inner.startswith(_BOXED) and inner.endswith("}"):
        inner = inner[len(_BOXED) : -1].strip()
    return inner
