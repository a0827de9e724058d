"""The files of `podium study --preset compose`: it opens the candidates, and writes the team of those chosen."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from podium.cli.printable import counted
from podium.cli.terminal import open_console
from podium.config.toml_text import toml_text
from podium.errors import UsageError, WorkerError
from podium.rollout.run_folder import replace_file
from podium.team.opening import open_pool
from podium.workers.chat.catalogue import read_catalogue
from podium.workers.pool import Pool, is_tool, pool_file
from podium.workers.ratings import Ratings
from podium.workers.redaction import read_key
from podium.workers.spec import PATH_KEYS

_HEADER = "# Written by podium study --preset compose."
CANDIDATES = "candidates.toml"
"""The pool file that is made of an endpoint's list of models."""


def check_out(out: Path, candidates: str) -> None:
    """Refuse a place for the team file where something else stands.

    Raises:
        UsageError: it is a file that this command did not write.
    """
    if out.exists() and not out.read_bytes().startswith(_HEADER.encode()):
        raise UsageError(f"{out} exists, and no study composed it; give another --out.")
    if out.resolve() == pool_file(candidates).resolve():
        raise UsageError(f"{out} is the file of the candidates; give another --out.")


def open_candidates(name: str, key_env: str | None, folder: Path) -> Pool:
    """The candidates of a pool file, or those of an endpoint, whose list is kept as a pool file in `folder`.

    Raises:
        UsageError: there are none, or they cannot be read.
    """
    if "://" not in name:
        if key_env is not None:
            raise UsageError(f"--key-env {key_env}: {name} is a pool file, which names its keys itself.")
        pool = open_pool(name, rated=False)
    else:
        key = None if key_env is None else read_key(key_env, name, where=("--key-env",))
        try:
            catalogue = asyncio.run(read_catalogue(name, key, key_env))
        except WorkerError as error:
            raise UsageError(f"{name}: its list of models cannot be read: {error}") from None
        if not catalogue.workers:
            raise UsageError(
                f"{name} lists no model with a price ({counted(catalogue.left_out, 'model')} without); write a pool "
                "file with prices instead."
            )
        if catalogue.left_out:
            left_out = counted(catalogue.left_out, "model")
            open_console(stderr=True).print(f"Left out: {left_out} without a price or without text.")
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(folder / CANDIDATES, toml_text({"worker": catalogue.workers}).encode())
        pool = open_pool(str(folder / CANDIDATES), rated=False)
    if all(map(is_tool, pool)):
        raise UsageError(f"{name} has only tools; give candidates that answer questions.")
    return pool


def write_pool(out: Path, pool: Pool, chosen: Collection[str], ratings: Ratings) -> None:
    """Write the chosen workers and the pool's tools as a pool file, and the ratings beside it.

    The ratings are written first, so a pool file never names ratings that are not there.
    """
    assert pool.source is not None
    beside = out.with_name(f"{out.stem}-ratings.json")
    replace_file(beside, ratings.document)
    kept = {*chosen, *(worker.profile.name for worker in pool if is_tool(worker))}
    tables: dict[str, Any] = {"ratings": beside.name}
    conductor = {
        key: value
        for key, value in pool.source.tables.get("conductor", {}).items()
        if key not in ("worker", "fallback") or value in kept
    }
    if conductor:
        tables["conductor"] = _moved(conductor, pool.folder, out.parent)
    tables["worker"] = [
        _moved(_without_fallback(table, kept), pool.folder, out.parent)
        for table in pool.source.tables["worker"]
        if table["name"] in kept
    ]
    replace_file(out, f"{_HEADER}\n{toml_text(tables)}".encode())


def _without_fallback(table: Mapping[str, Any], kept: Collection[str]) -> dict[str, Any]:
    """A worker's table; a fallback that is not in the pool is left out."""
    return {key: value for key, value in table.items() if key != "fallback" or value in kept}


def _moved(table: Mapping[str, Any], old: Path, new: Path) -> dict[str, Any]:
    """A table with its paths seen from the folder `new`. A program without a folder runs in that of the pool file."""
    moved = dict(table)
    if moved.get("kind") == "command":
        moved.setdefault("folder", ".")
    for key in PATH_KEYS:
        value = moved.get(key)
        if isinstance(value, str) and not Path(value).is_absolute() and (old / value).exists():
            moved[key] = os.path.relpath(old / value, new)
    return moved
