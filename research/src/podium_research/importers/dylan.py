"""Imports DyLAN's logs of MATH: debates of up to four agents of one model, in up to three rounds.

The source is one of its folders of JSON files, `exp/MATH/CoT` or `exp/MATH/Complex`. An answer of the first round is a
response to the bare question; the agents are its samples. Each answer of a later round is a conditioned response: its
agent saw the latest answers of the others. What the message says after them is the subtask. The folder's examples and
the system prompt belong to the worker, so each folder has a worker of its own. The ranking that chooses agents between
two rounds is not in the logs. Verdicts are computed here: equal numbers, or equal text without LaTeX commands. Source:
SALT-NLP/DyLAN, MIT.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from podium.plugin_api.importers import ImportReport, RecordingWriter
from podium.recordings.recording_model import (
    RecordedQuestion,
    RecordedResponse,
    ShownContext,
    hashed_id,
    split_by_hash,
)
from podium.text.boxes import boxed_answer
from podium.types import ANSWER_WHOLE_QUESTION
from podium_research.importers.documents import SourceDocument, list_files, read_json
from podium_research.importers.zeroeval import same

_MODEL = "gpt-3.5-turbo"
_PROBLEM = "Problem: "
_SOLUTION = re.compile(r"\n\nOne agent(?:'s)? solution: ```")
_CLOSED = "```\n\n"
_MIN_AGENTS = 3
"""With fewer agents in a log, a ranking has chosen them, and it is not known who they were in the second round."""
_SAID = re.compile(r"answer is:?\s*(.+?)\.?\s*$", re.IGNORECASE | re.MULTILINE)


class _Message(SourceDocument):
    role: str
    content: str


_LOG = TypeAdapter(dict[str, tuple[list[list[_Message]], str, Any, Any]])
"""A log: for each prompt of a first round the messages of each agent, the gold answer, level and subject."""


def import_dylan(path: Path, writer: RecordingWriter, report: Callable[[str], None]) -> ImportReport:
    """Read the logs in `path`.

    Args:
        report: called with the name of each file before it is read.

    Raises:
        UsageError: there are no files, or one cannot be read.
    """
    import_report = ImportReport(source=f"SALT-NLP/DyLAN, MATH, {path.name}", licence="MIT")
    worker = f"{_MODEL}/{path.name}"
    for file in list_files(path, "*.json", "one of its folders of logs, such as exp/MATH/CoT"):
        report(file.stem)
        for prompt, (agents, gold, _, subject) in read_json(file, _LOG).items():
            text = prompt.rpartition(_PROBLEM)[2].strip().removesuffix("Answer:").strip()
            question_id = hashed_id(text)
            writer.add_question(
                RecordedQuestion(question_id, text, gold, str(subject), split_by_hash(question_id))
            )
            for agent, messages in enumerate(agents):
                for turn, (asked, answer) in enumerate(_turns(messages)):
                    seen = None if asked.strip() == prompt.strip() else _shown_context(asked, agent, turn)
                    if seen is not None and (not seen.earlier or (turn == 1 and len(agents) < _MIN_AGENTS)):
                        import_report.left_out["answers to others whose own messages the logs lack"] += 1
                        continue
                    final = _answer(answer)
                    score = float(final is not None and same(final, gold))
                    response = RecordedResponse.from_text(
                        worker, answer, sample=agent, answer=None, score=score
                    )
                    if not writer.add(question_id, response, seen=seen):
                        import_report.left_out["answers of an agent that the logs have twice"] += 1
    return import_report


def _turns(messages: list[_Message]) -> Iterator[tuple[str, str]]:
    """What an agent was asked and what it answered, in order."""
    for asked, answered in pairwise(messages):
        if asked.role == "user" and answered.role == "assistant":
            yield asked.content, answered.content


def _shown_context(asked: str, agent: int, turn: int) -> ShownContext:
    """What a message of a debate shows. Without solutions in it, nothing earlier.

    The agents answer one after another. Each sees the latest answer of every other one: from the agents before it, the
    answer of this round; from those after it, the answer of the round before.
    """
    _, *solutions = _SOLUTION.split(asked)
    if not solutions:
        return ShownContext("")
    solutions[-1], _, subtask = solutions[-1].rpartition(_CLOSED)
    subtask = subtask.strip()
    shown = (
        (subtask if index < agent or turn > 1 else ANSWER_WHOLE_QUESTION, solution.removesuffix("```"))
        for index, solution in enumerate(solutions)
    )
    return ShownContext(subtask, tuple(shown))


def _answer(text: str) -> str | None:
    """What the last box holds, else what the last "answer is" names, or None if there is neither."""
    boxed = boxed_answer(text, closed=True)
    answers = [boxed] if boxed is not None else [said.strip("$ ") for said in _SAID.findall(text)]
    return answers[-1] if answers else None
