"""A reader who follows a document: bash in an empty folder with an empty home, the programs of this environment, an
endpoint on this machine in place of every provider, and a port of its own for every server that a document starts.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from command_table import SLOW
from free_port import free_port
from shown_commands import ROOT, Command

PATIENCE_S = 150
PLAN = 'model_id = [0]\nsubtasks = ["Answer the question."]\naccess_list = [[]]'
_PORT = "8080"
"""Where documents say that `podium serve` is, unless told otherwise."""
DEFAULT = f"127.0.0.1:{_PORT}"
SERVE = re.compile(r"podium (?:serve|score-server)\b")
SERVER = re.compile(rf"{SERVE.pattern}|python -m podium_testing\b")
_PROVIDER = re.compile(r"""https?://(?!127\.0\.0\.1)[^\s"'/]+/(?:[^\s"']*/)?v1[^\s"'/]*[^\s"']*""")
_KEY = re.compile(r"\b[A-Z][A-Z_]*_KEY\b")
_INSTALLED = re.compile(r"\.venv/bin/(?=(?:podium|inspect) )")
_BEFORE = """
set -eo pipefail
servers=()
end() {
  status=$?
  for server in "${servers[@]}"; do
    kill -TERM "$server" 2>/dev/null || true
    wait "$server" || { echo "the server ended with status $?" >>said/end.err; status=1; }
  done
  exit "$status"
}
trap end EXIT
"""
_UNTIL_IT_ANSWERS = """ &
servers+=($!)
until grep -q http said/{step}.out; do kill -0 ${{servers[-1]}}; sleep 0.05; done
"""


async def conduct(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
    """What every model of the endpoint says: a plan where it is asked for one, else an answer."""
    said = " ".join(str(message.get("content")) for message in messages)
    if SLOW in said:
        await asyncio.sleep(PATIENCE_S)
    if "RIGHT, WRONG, or UNSURE" in said:
        return "RIGHT"
    asked = "access_list" in said or '"steps"' in said
    return PLAN if asked else "Answer: 42"


@dataclass
class Reader:
    """One reader, with a folder and a home."""

    folder: Path
    provider: str
    """The address in place of every provider's."""
    ollama: str
    """The address of the models on this machine."""
    programs: Path
    """Goes first on the PATH."""
    database: str | None = None
    """The address in place of a PostgreSQL's."""
    ports: dict[str, int] = field(default_factory=dict)
    """By the document's port, the port that is used."""

    def __post_init__(self) -> None:
        self.home.mkdir(parents=True)
        (self.home / ".curlrc").write_text("fail-with-body\n")  # A refusal is to be a failure of curl's.
        (self.folder / "said").mkdir()
        (self.folder / ".venv").symlink_to(sys.prefix)

    @property
    def home(self) -> Path:
        """Where nothing is but what a document put there."""
        return self.folder.parent / "home"

    def here(self, text: str) -> str:
        """A document's text with this machine's addresses in it."""
        for port in re.findall(rf"(?:--port |127\.0\.0\.1:(?={_PORT}))(\d+)", text):
            self.ports.setdefault(port, free_port())
        text = _PROVIDER.sub(self.provider, text)
        if self.database is not None:
            text = re.sub(r"postgresql://[\w.]+@[\w.]+/\w+", self.database, text)
        for shown, used in self.ports.items():
            text = re.sub(rf"(--port |127\.0\.0\.1:|localhost:){shown}\b", rf"\g<1>{used}", text)
        return text

    def follow(self, commands: Sequence[Command], texts: Sequence[str]) -> str | None:
        """Run the commands in turn, in one shell; what came of them if one failed, else None.

        Args:
            commands: as the document has them, for what is said.
            texts: the same as they are run.
        """
        script = _BEFORE + "".join(self._steps(texts))
        with subprocess.Popen(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self._variables(" ".join(texts)),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        ) as shell:
            try:
                status = shell.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                status = 124
            finally:
                # What it has started ends with it, whatever became of the shell.
                _end_group(shell.pid)
        return None if status == 0 else self._told(commands, texts, status)

    def _steps(self, texts: Sequence[str]) -> Iterator[str]:
        served = 0
        for step, text in enumerate(texts):
            line = _INSTALLED.sub(f"{self.programs}/", self.here(text))
            if SERVE.search(text) and "--port" not in text:
                port = self.ports.get(_PORT, 0) if not served else 0
                self.ports[_PORT] = port or free_port()
                served += 1
                line += f" --port {self.ports[_PORT]}"
            yield f"exec >said/{step}.out 2>said/{step}.err\n{line}"
            yield _UNTIL_IT_ANSWERS.format(step=step) if SERVER.search(text) else "\n"

    def _variables(self, text: str) -> Mapping[str, str]:
        files = " ".join(file.read_text(encoding="utf-8") for file in self.folder.glob("*.toml"))
        keys = dict.fromkeys(_KEY.findall(text + files), "a-key")
        return (
            {"OMP_NUM_THREADS": "1"}
            | keys
            | {
                "PATH": f"{self.programs}:{sys.prefix}/bin:{os.environ['PATH']}",
                "PYTHONPATH": str(ROOT / "src"),
                "HOME": str(self.home),
                "LANG": "C.UTF-8",
                "COLUMNS": "120",
                "HF_HUB_OFFLINE": "1",
                "OLLAMA_HOST": self.ollama,
            }
        )

    def _told(self, commands: Sequence[Command], texts: Sequence[str], status: int) -> str:
        said = self.folder / "said"
        step = max((int(file.stem) for file in said.glob("*.out")), default=0)
        files = (said / f"{step}.out", said / f"{step}.err", *said.glob("end.err"))
        output = "\n".join(file.read_text(errors="replace")[-3000:] for file in files if file.exists())
        return (
            f"{commands[step]}\nwas run as\n{texts[step]}\nand ended with status {status}:\n{output}\n"
            "Mend the document or the code. tests/docs/document_files.py writes what a reader would "
            "have, and tests/docs/command_table.py says what no suite can run."
        )


def _end_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return
