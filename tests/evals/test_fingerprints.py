"""A run with other weights under the same name is another run, and a copy with other dates is the same one."""

from __future__ import annotations

import os
import shutil
from hashlib import sha256
from pathlib import Path

from podium.conductor.checkpoint import checkpoint_folder
from podium.conductor.settings import ConductorSettings
from podium.evals.fingerprints import digest, fingerprints
from podium.team.settings import PlannerChoice, TeamSettings
from podium.team.team_file import TeamReference, open_pool
from podium.workers.ratings import Ratings, Tally

_POOL = """
[conductor]
checkpoint = "mine"
[[worker]]
name = "ada"
kind = "local"
path = "ada"
"""


def test_changed_weights_under_the_same_name_are_another_configuration(tmp_path: Path) -> None:
    for name in ("mine", "before", "ada"):
        shutil.copytree(checkpoint_folder("world-conductor"), tmp_path / name)
    file = tmp_path / "pool.toml"
    file.write_text(_POOL)

    def found() -> str:
        before = TeamSettings(conductor=ConductorSettings(checkpoint=str(tmp_path / "before")))
        planners = [TeamReference(str(file)).read(), before]
        return digest(fingerprints("world", str(file), open_pool(str(file)), planners))

    seen = [found()]
    for name in ("mine", "before", "ada"):
        weights = tmp_path / name / "model.safetensors"
        content = bytearray(weights.read_bytes())
        os.utime(weights, (1, 1))
        assert found() == seen[-1], "the same content at another date is the same"
        content[-1] ^= 1
        weights.write_bytes(content)
        seen.append(found())
    assert len(set(seen)) == len(seen)


def test_a_shipped_checkpoint_is_known_by_its_weights() -> None:
    _, _, files, *_ = fingerprints(
        "world", "orchestra", open_pool("orchestra"), [TeamReference("orchestra").read()]
    )
    weights = (checkpoint_folder("world-conductor") / "model.safetensors").read_bytes()
    assert ("model.safetensors", len(weights), sha256(weights).hexdigest()) in files


def test_fingerprint_changes_with_the_content_of_referenced_files(
    tmp_path: Path,
) -> None:
    table, plan, ratings = (tmp_path / name for name in ("mine.csv", "plan.txt", "ratings.json"))
    tasks, pool = tmp_path / "tasks.toml", tmp_path / "pool.toml"
    tasks.write_text('[[part]]\nset = "own"\nfile = "mine.csv"\n')
    pool.write_text(
        'ratings = "ratings.json"\n[[worker]]\nname = "ada"\nkind = "scripted"\nreplies = { "" = "1" }\n'
    )
    table.write_text("id,question,answer\na,What is 1 + 1?,2\n")
    plan.write_text("Anything.")
    rated = Ratings(
        clusters={"sums": {"plus": 1.0}}, workers={"ada": {"sums": Tally(right=1, questions=2, cost_usd=0)}}
    )
    ratings.write_bytes(rated.document)

    def found() -> str:
        planners = [TeamSettings().with_planner(PlannerChoice(planner=f"constant:{plan}"))]
        return digest(fingerprints(str(tasks), str(pool), open_pool(str(pool)), planners))

    seen = [found()]
    table.write_text("id,question,answer\na,What is 1 + 1?,3\n")
    seen.append(found())
    plan.write_text("Anything else.")
    seen.append(found())
    ratings.write_bytes(ratings.read_bytes().replace(b'"right": 1', b'"right": 2'))
    seen.append(found())
    assert len(set(seen)) == 4
