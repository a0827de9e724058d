"""Digests of everything on which figures depend. Two runs have equal digests only if their settings and files are
equal."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from podium.conductor.checkpoint import checkpoint_folder
from podium.planners import find_baseline
from podium.tasks.open import user_files
from podium.team.opened_planner import checkpoint_of
from podium.team.settings import TeamSettings
from podium.workers.pool import Pool, pool_file
from podium.workers.replay import ReplayWorker

_READ = 2**28
"""The most bytes of a file that are read. Larger files are identified by size and time of the last change."""


def digest(described: Any) -> str:
    """Twelve hexadecimal digits that stand for any JSON value."""
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:12]


def fingerprints(tasks: str, pool_name: str, pool: Pool, planners: Sequence[TeamSettings]) -> list[Any]:
    """Fingerprints of all files on which answers depend: of the tasks, of the pool with its ratings and recordings, of
    the planners' checkpoints and files, and of the models that run in this process."""
    checkpoints = (checkpoint_of(planner) for planner in planners)
    identities = (worker.identity or {} for worker in pool)
    models = (identity["model"] for identity in identities if identity.get("kind") == "local")
    recordings = {worker.recording.header.sha256: None for worker in pool if isinstance(worker, ReplayWorker)}
    baselines = (find_baseline(planner.plan.planner) for planner in planners)
    return [
        fingerprint(Path(tasks)),
        fingerprint(pool_file(pool_name)),
        *(None if source is None else fingerprint(checkpoint_folder(source)) for source in checkpoints),
        *models,
        *(fingerprint(file) for file in user_files(tasks)),
        *recordings,
        *(() if pool.ratings is None else (digest(pool.ratings.model_dump(mode="json")),)),
        *(
            fingerprint(Path(baseline[1]))
            for baseline in baselines
            if baseline is not None and baseline[0].reads_files
        ),
    ]


def fingerprint(path: Path) -> list[Any] | None:
    """A fingerprint of the content of a file or folder. None if it does not exist, or is the working folder."""
    if path == Path() or not path.exists():
        return None
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    stats = ((file, file.stat()) for file in files if file.is_file())
    return [_described(file, about.st_size, about.st_mtime_ns) for file, about in stats]


@cache
def _described(file: Path, size: int, changed: int) -> tuple[str, int, str | int]:
    content = hashlib.sha256(file.read_bytes()).hexdigest() if size <= _READ else changed
    return file.name, size, content
