"""What a reader has when a document is followed: files by the names that documents give them.

Each is laid where a block speaks of it and does not make it itself. A file that no document speaks of any more fails a
test.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from command_table import QUESTION
from document_reader import Reader
from podium.planners import Single
from podium.recordings import RecordedQuestion, RecordedResponse, RecordingWriter
from podium.rollout.run_folder import RunFolder
from podium.store import TraceStore
from podium.team import Runner
from podium.types import Question
from podium.workers.response_cache import ResponseCache
from scripted_team import open_team
from shown_commands import ROOT, Block, blocks
from tiny_policy import write_policy

_POOL = r"""(?s)\[\[worker\]\].*base_url = "http"""


@dataclass(frozen=True, slots=True)
class Ground:
    """Where a block is followed."""

    reader: Reader
    block: Block

    def write(self, name: str, text: str) -> Path:
        """A file with a document's text, its addresses being those of here."""
        path = self.reader.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.reader.here(text), encoding="utf-8")
        return path

    def write_json(self, name: str, document: Any) -> None:
        """A file of JSON."""
        self.write(name, json.dumps(document))

    def write_rows(self, name: str, rows: Iterable[Any]) -> None:
        """A file of JSON lines."""
        self.write(name, "".join(json.dumps(row) + "\n" for row in rows))

    def shown(self, language: str, pattern: str) -> list[str]:
        """Blocks of the document in a language, those that hold the pattern."""
        return [
            block.text
            for block in blocks(self.block.path)
            if block.language == language and re.search(pattern, block.text)
        ]

    @property
    def pool(self) -> str:
        """The document's own team file of endpoints; else the README's."""
        own = self.shown("toml", _POOL)
        readme = [block.text for block in blocks(ROOT / "README.md") if re.search(_POOL, block.text)]
        return (own or readme)[0]

    @property
    def workers(self) -> list[str]:
        """The names of the pool's workers, those that vote left out."""
        workers = tomllib.loads(self.pool)["worker"]
        return [worker["name"] for worker in workers if worker["kind"] != "vote"]


def lay(ground: Ground) -> None:
    """Everything that the block speaks of."""
    ground.reader.here(ground.block.text)  # From here on files, too, name the ports that it will use.
    for row in GROUND:
        if row.is_needed(ground.block.text):
            row.lay(ground)


# --- pools, questions, tasks -------------------------------------------------------------------------------


def _pool(ground: Ground) -> None:
    for name in ("my.toml", "my-workers.toml"):
        ground.write(name, ground.pool)


def _written_pool(ground: Ground) -> None:
    """As `podium init` writes it: what it calls costs nothing."""
    worker = (
        '[[worker]]\nname = "{0}"\nkind = "openai"\nmodel = "{0}"\nbase_url = "http://models.example/v1"\n'
        "price = {{ input = 0, output = 0 }}\n"
    )
    vote = '[[worker]]\nname = "vote"\nkind = "vote"\n'
    ground.write("team.toml", "\n".join([*map(worker.format, ("qwen3-8b", "gemma3-4b")), vote]))


def _replay_pool(ground: Ground) -> None:
    found = re.search(r"recordings/\w+\.parquet", ground.block.text)
    assert found, "a pool of recorded workers needs a recording"
    worker = '[[worker]]\nname = "{}"\nkind = "replay"\nrecording = "{}"\nprice = {{ output = {} }}\n'
    rows = [worker.format(name, found[0], price) for price, name in enumerate(ground.workers, 1)]
    ground.write("my-replay-pool.toml", "\n".join([*rows, '[[worker]]\nname = "vote"\nkind = "vote"\n']))


def _question(ground: Ground) -> None:
    ground.write("question.txt", QUESTION)


def _own_tasks(ground: Ground) -> None:
    shown = blocks(ROOT / "docs" / "tasks.md")
    own = next(block.text for block in shown if block.language == "toml" and 'set = "own"' in block.text)
    for name in ("mine.toml", "my-questions.toml"):
        ground.write(name, own)
    rows = ({"problem": f"How many are {n} boxes of {n + 1} pears?", "answer": n * n + n} for n in range(100))
    ground.write_rows("questions.jsonl", rows)


def _inspect_task(ground: Ground) -> None:
    ground.write(
        "theory.py",
        "from inspect_ai import Task, task\nfrom inspect_ai.dataset import Sample\n"
        "from inspect_ai.scorer import match\n\n\n@task\ndef theory_of_mind() -> Task:\n"
        f'    return Task(dataset=[Sample(input="{QUESTION}", target="Thursday")], scorer=match())\n',
    )


# --- recordings, and what they are made of -----------------------------------------------------------------


def _recording(ground: Ground, name: str, workers: Iterable[str]) -> None:
    """16 questions, the one that readers ask among them; the k-th worker knows every (k + 2)-th."""
    path = ground.reader.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    names = tuple(workers)
    with RecordingWriter() as writer:
        for number in range(16):
            text = f"Spell river number {number} backwards." if number else QUESTION
            split = ("train", "train", "validation", "test")[number % 4]
            writer.add_question(RecordedQuestion(f"q{number}", text, "yes", f"kind {number % 3}", split))
            for every, worker in enumerate(names, 2):
                said = "Answer: yes" if number % every == 0 else f"Answer: no {worker}"
                response = RecordedResponse(
                    worker, 0, said, score=float(number % every == 0), output_tokens=40
                )
                writer.add(f"q{number}", response)
        writer.write(path, name=path.stem)


def _easy(ground: Ground) -> None:
    _recording(ground, "recordings/easy.parquet", ground.workers)


def _published(ground: Ground) -> None:
    table = 'name = "tiny"\n[questions]\nfile = "rows.jsonl"\nid = "id"\ntext = "text"\n'
    table += (
        '[responses]\nfile = "rows.jsonl"\nquestion = "id"\nworker = "who"\ntext = "said"\nscore = "ok"\n'
    )
    ground.write("columns.toml", table)
    ground.write_rows("rows.jsonl", [{"id": 1, "text": "2 + 2?", "who": "wise", "said": "4", "ok": 1}])


# --- what earlier commands have left -----------------------------------------------------------------------


def _traces(ground: Ground) -> None:
    """Traces of the question, one of them the one that documents name."""
    pool = open_team()
    asked = Runner(Single(pool.names[0]), pool).answer(Question(text=QUESTION), seed="0")
    trace = asyncio.run(asked)
    path = ground.reader.home / ".local/share/podium/traces.sqlite"
    path.parent.mkdir(parents=True)
    with TraceStore(path) as store:
        store.add(trace)
        store.add(trace.model_copy(update={"id": "3f9a" + trace.id[4:]}))


def _run(ground: Ground) -> None:
    """A run of this name, as far as it is looked at: its policy, and what it was trained on."""
    folder = ground.reader.folder / "runs/mine"
    RunFolder.open(folder, {"pool": "my.toml", "tasks": "mine.csv"})
    write_policy(folder / "policy")
    _pool(ground)
    _table(ground)


def _run_file(ground: Ground) -> None:
    ground.write("my-run.toml", 'start = "start"\npool = "my.toml"\ntasks = "mine.csv"\n')
    write_policy(ground.reader.folder / "start")
    _pool(ground)
    _table(ground)


def _table(ground: Ground) -> None:
    rows = "".join(f"What is {n} + {n}?,{2 * n}\n" for n in range(24))
    ground.write("mine.csv", f"question,answer\n{rows}")


def _questions_only(ground: Ground) -> None:
    rows = "".join(f"What is {n} + {n}?\n" for n in range(24))
    ground.write("questions-only.csv", f"question\n{rows}")


def _studied(ground: Ground) -> None:
    ground.write("study/team.toml", 'pool = "../my.toml"\n\n[plan]\nplanner = "single:large"\n')
    _pool(ground)


def _traffic(ground: Ground) -> None:
    """A store with several questions."""
    _traces(ground)
    with TraceStore(ground.reader.home / ".local/share/podium/traces.sqlite") as store:
        (first, *_) = store.iterate()
        for n in range(30):
            question = Question(text=f"What is {n} + {n}?")
            store.add(first.model_copy(update={"id": f"{n:032x}", "question": question}))


def _answers(ground: Ground) -> None:
    path = ground.write("tests/answers.sqlite", "")
    path.unlink()
    ResponseCache(path).close()


def _rules(ground: Ground) -> None:
    rules = ground.shown("toml", r"\[\[rule\]\]")[0]
    ground.write("rules.toml", rules.replace("retry_after = 2", "retry_after = 0.01"))


def _suite(ground: Ground) -> None:
    _pool(ground)
    _table(ground)
    ground.write("compare.toml", ground.shown("toml", r"\[\[planner\]\]")[0])


def _configs(ground: Ground) -> None:
    shutil.copytree(ROOT / "configs", ground.reader.folder / "configs", dirs_exist_ok=True)


def _docs(ground: Ground) -> None:
    (ground.reader.folder / "docs").mkdir()


@dataclass(frozen=True, slots=True)
class Laid:
    """A row of the ground."""

    name: str
    """How blocks speak of it."""
    lay: Callable[[Ground], None]
    unless: str = r"(?!)"
    """What a block says that makes it itself."""

    def is_needed(self, text: str) -> bool:
        """Whether a block of this text needs it."""
        return re.search(self.name, text) is not None and re.search(self.unless, text) is None


GROUND = (
    Laid(r"\bmy\.toml|my-workers\.toml|127\.0\.0\.1:8080", _pool),
    Laid(r"(?<![\w/-])team\.toml", _written_pool, r"podium init"),
    Laid(r"my-replay-pool\.toml", _replay_pool),
    Laid(r"question\.txt", _question),
    Laid(r"\bmine\.toml|my-questions\.toml", _own_tasks),
    Laid(r"theory\.py", _inspect_task),
    Laid(r"recordings/easy\.parquet", _easy, r"replay import .* recordings/easy\.parquet"),
    Laid(r"replay import", _published),
    Laid(r"\b3f9a\b|traces (?:list|show|export)|traces\.sqlite", _traces),
    Laid(r"runs/mine\b", _run, r"train --run runs/mine --config my-run"),
    Laid(r"my-run\.toml", _run_file),
    Laid(r"mine\.csv", _table),
    Laid(r"questions-only\.csv", _questions_only),
    Laid(r"study/team\.toml", _studied),
    Laid(r"podium study --preset shadow", _traffic),
    Laid(r"tests/answers\.sqlite", _answers),
    Laid(r"rules\.toml", _rules),
    Laid(r"compare\.toml", _suite),
    Laid(r"configs/", _configs),
    Laid(r"docs/reference\.md", _docs),
)
