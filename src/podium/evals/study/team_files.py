"""Writes the team files of a study, which serve its recommendation.

`podium serve --team FOLDER/team.toml` serves the recommendation. If its planner needs a voting worker or ratings, the
file has a copy of the user's workers with them. Else it names the user's file.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from podium.config.toml import toml_text
from podium.evals.study.conductors import TRAINED
from podium.evals.study.methods import MethodResult
from podium.files.atomic import replace_file
from podium.workers.pool import Pool, pool_file
from podium.workers.ratings import Ratings
from podium.workers.vote import VOTE

RATINGS, TEAM = "ratings.json", "team"
_PATH_KEYS = ("recording", "pool", "checkpoint", "podium_file", "folder", "path", "file")
"""Keys of a team file whose values may be paths, relative to the file's folder."""


def write_team_file(
    file: Path,
    method: MethodResult,
    pool: Pool,
    *,
    pool_name: str,
    ratings: Ratings | None,
    checkpoint: str | None = None,
) -> None:
    """Write the team file that serves a method of a study, and beside it the ratings that it needs.

    Args:
        pool_name: the file with the workers of the user's team, or the name of a shipped team.
        ratings: the ratings from all questions of the study, for Conductors that read ratings. A router has its own.
        checkpoint: the trained Conductor that the study ran. None if it ran none.
    """
    chosen, trained, folder = method.chosen, method.name == TRAINED, file.parent
    planner = "conductor" if chosen is None else chosen.planner.name
    votes = chosen is None or planner.startswith(("committee:", "cascade:"))
    conductor_reads = ratings if "ratings" in method.name else None
    rated = conductor_reads if chosen is None else chosen.ratings
    own = pool_file(pool_name)
    if rated is not None or (votes and VOTE not in pool.names):
        tables = worker_tables(file, pool, rated, votes=votes)
    else:
        tables = {"pool": pool_name if own != Path(pool_name) else _seen_from(folder, own)}
    # Votes were priced with early stopping, but an untrained Conductor was not.
    tables["plan"] = {"planner": planner, "early_stop": chosen is not None or trained}
    if trained and checkpoint is not None:
        tables["conductor"] = {"checkpoint": _seen_from(folder, Path(checkpoint))}
    if chosen is not None and chosen.planner.rounds > 1:
        tables["budget"] = {"rounds": chosen.planner.rounds}
    header = f"# Written by podium study. It serves: {' '.join(method.choice.split())}.\n"
    replace_file(file, (header + toml_text(tables)).encode())


def worker_tables(
    file: Path,
    pool: Pool,
    ratings: Ratings | None,
    *,
    kept: Collection[str] | None = None,
    votes: bool = False,
) -> dict[str, Any]:
    """The tables of a team file with the workers of a pool that was read from another file. Their ratings are written
    beside it, so that it never names ratings that are not there.

    Args:
        kept: the names of the workers. Default: all.
        votes: whether a voting worker is added if there is none.
    """
    assert pool.source is not None
    names = pool.names if kept is None else kept
    tables: dict[str, Any] = {}
    if ratings is not None:
        tables["ratings"] = RATINGS if file.stem == TEAM else f"{file.stem}-{RATINGS}"
        replace_file(file.with_name(tables["ratings"]), ratings.document)
    conductor = pool.source.tables.get("conductor", {})
    working_folder = Path()  # The paths are already relative to the working folder.
    conducts = {k: v for k, v in conductor.items() if k not in ("worker", "fallback") or v in names}
    if conducts:
        tables["conductor"] = _moved(conducts, working_folder, file.parent)
    tables["worker"] = [
        _moved(
            {k: v for k, v in table.items() if k != "fallback" or v in names}, pool.source.folder, file.parent
        )
        for table in pool.source.tables["worker"]
        if table["name"] in names
    ]
    if votes and VOTE not in names:
        tables["worker"].append({"name": VOTE, "kind": "vote"})
    return tables


def _moved(table: Mapping[str, Any], old: Path, new: Path) -> dict[str, Any]:
    """A table with its paths made relative to the folder `new`. A program without a folder runs in its file's
    folder."""
    moved = dict(table)
    if moved.get("kind") == "command":
        moved.setdefault("folder", ".")
    for key in _PATH_KEYS:
        value = moved.get(key)
        if isinstance(value, str) and (old / value).exists():
            moved[key] = _seen_from(new, old / value)
    return moved


def _seen_from(folder: Path, path: Path) -> str:
    return str(path) if path.is_absolute() else os.path.relpath(path, folder)
