"""Writes the team file that serves what a study recommends, with the pool and ratings that it needs.

`podium serve --team FOLDER/team.toml` takes it as it is. The study's own pool is a copy of the user's team file,
with what the planner needs: a voting worker, or ratings.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from podium.rollout.run_folder import replace_file
from podium.study.crossfit import Measured
from podium.workers.pool import Pool, pool_file
from podium.workers.ratings import Ratings
from podium.workers.spec import PATH_KEYS
from podium.workers.vote import VOTE

RATINGS, TEAM = "ratings.json", "team"
_PATH = re.compile(rf'(?m)(?<![\w.-])((?:worker\.)?(?:{"|".join(PATH_KEYS)})\s*=\s*)"([^"\n]*)"')
_RATINGS = re.compile(r"(?m)^ratings\s*=.*\n?")
_WORKER = re.compile(r"(?m)^(?=\s*\[\[worker\]\])")


@dataclass(frozen=True)
class ServingFiles:
    """Writes settings files for the methods of one study.

    Args:
        folder: of the study.
        pool_name: the file with the workers of the user's team, or the name of a shipped team.
        pool: the pool itself.
        ratings: of all questions of the study, for Conductors that read ratings; a router has its own.
        checkpoint: the trained Conductor that the study ran; None: none.
    """

    folder: Path
    pool_name: str
    pool: Pool
    ratings: Ratings | None
    checkpoint: str | None = None

    def write(self, name: str, method: Measured, *, trained: bool = False) -> str:
        """Write `name`.toml, and the pool file and ratings that it needs. Returns the name of the file.

        Args:
            trained: whether the method is the trained checkpoint.
        """
        planner = "" if method.chosen is None else method.chosen.planner
        votes = method.chosen is None or planner.startswith(("committee:", "cascade:"))
        reads = trained or (method.chosen is None and "ratings" in method.name)
        rated = self.ratings if reads else None if method.chosen is None else method.chosen.ratings
        lines = [
            f"# Written by podium study. It serves: {_one_line(method.choice)}.",
            f"pool = {json.dumps(self._pool_file(name, votes=votes, rated=rated), ensure_ascii=False)}",
            "",
            "[plan]",
            f"planner = {json.dumps(planner or 'conductor', ensure_ascii=False)}",
            # Votes were priced so. An untrained Conductor was not.
            f"early_stop = {'true' if planner or trained else 'false'}",
        ]
        if not planner and trained and self.checkpoint is not None:
            lines += [
                "",
                "[conductor]",
                f"checkpoint = {json.dumps(self._seen_from_here(Path(self.checkpoint)))}",
            ]
        if method.chosen is not None and method.chosen.rounds > 1:
            lines += ["", "[budget]", f"rounds = {method.chosen.rounds}"]
        replace_file(self.folder / f"{name}.toml", ("\n".join(lines) + "\n").encode())
        return f"{name}.toml"

    def _pool_file(self, name: str, *, votes: bool, rated: Ratings | None) -> str:
        """The pool that the settings name: the user's own if it has what is needed, else a copy in the folder."""
        own = pool_file(self.pool_name)
        add_vote = votes and VOTE not in self.pool.names
        if not add_vote and rated is None:
            return self.pool_name if own != Path(self.pool_name) else self._seen_from_here(own)
        text = _RATINGS.sub("", own.read_text(encoding="utf-8"))
        text = "".join(self._moved(part, own.parent) for part in _WORKER.split(text))
        if rated is not None:
            ratings = RATINGS if name == TEAM else f"{name}-{RATINGS}"
            replace_file(self.folder / ratings, rated.document)
            text = f'ratings = "{ratings}"\n\n{text}'
        if add_vote:
            text = f'{text.rstrip()}\n\n[[worker]]\nname = "{VOTE}"\nkind = "vote"\n'
        file = "pool.toml" if name == TEAM else f"{name}-pool.toml"
        replace_file(self.folder / file, text.encode())
        return file

    def _moved(self, part: str, base: Path) -> str:
        """A part of a pool file, its paths seen from the study's folder."""

        def moved(found: re.Match[str]) -> str:
            there = (base / found[2]).exists() and found[2]
            return f'{found[1]}"{self._seen_from_here(base / found[2])}"' if there else found[0]

        part = _PATH.sub(moved, part)
        # A program's folder is that of the pool file, unless it says otherwise.
        if re.search(r'(?m)^kind\s*=\s*"command"', part) and not re.search(r"(?m)^folder\s*=", part):
            part = f'{part.rstrip()}\nfolder = "{self._seen_from_here(base)}"\n\n'
        return part

    def _seen_from_here(self, path: Path) -> str:
        if path.is_absolute():
            return str(path)
        return os.path.relpath(path, self.folder)


def _one_line(text: str) -> str:
    return " ".join(text.split())
