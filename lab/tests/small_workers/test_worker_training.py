"""A worker of the orchestra is trained in parts, and a run that was stopped goes on with the worker's next part."""

import asyncio
import json
import shutil
import tomllib
from contextlib import suppress
from pathlib import Path
from random import Random

import podium_lab
from podium.conductor.checkpoint import Checkpoint
from podium.conductor.local_worker import view_prompt
from podium.files.atomic import replace_file
from podium.rollout.run_folder import RunFolder
from podium.team.team_file import open_pool
from podium.train.runtime import resolve_device
from podium.workers.base import Request
from podium.workers.view import WorkerView
from podium_lab.small_workers import training
from podium_lab.small_workers.lessons import fact_subtasks
from podium_lab.small_workers.measuring import complete, generate
from podium_lab.small_workers.training import OrchestraSettings, train_orchestra
from podium_lab.world import RELATIONS, world

SETTINGS = OrchestraSettings(
    workers=("jory",),
    steps=2,
    parts=2,
    plan_steps=1,
    batch=2,
    vocabulary=600,
    layers=1,
    vocabulary_lessons=20,
)


class StoppedError(Exception):
    """The run is stopped here."""


def test_a_stopped_run_goes_on_and_leaves_a_worker_that_answers(tmp_path, monkeypatch):
    steps = []

    def stop_in_the_second_part(name, row):
        steps.append(row["step"])
        if row["step"] > 3:
            raise StoppedError

    run = tmp_path / "run"
    with suppress(StoppedError):
        train_orchestra(SETTINGS, run, stop_in_the_second_part)
    assert steps == [3, 6]
    assert not (run / "jory").exists()
    # As if killed while the second part's model was written: its rows are there, and the model is half there.
    kept = run / ".jory"
    kept.joinpath("curve.json").write_text(json.dumps([{"step": 3}, {"step": 6}]))
    shutil.copytree(kept / "1", kept / ".2.part")
    half = run / ".ada.part"  # Another process is writing its worker.
    half.mkdir()
    half.joinpath("tokenizer.json").write_text("{")
    train_orchestra(SETTINGS, run, lambda name, row: steps.append(row["step"]))
    assert steps == [3, 6, 6, 9]
    card = json.loads((run / "jory" / "card.json").read_text())
    assert (card["worker"], card["device"]) == ("jory", resolve_device().type)
    assert [row["step"] for row in card["curve"]] == [3, 6, 9]
    pool = open_pool(str(run / "pool.toml"))
    assert pool.names == ("jory", "vote")
    view = WorkerView("Who governs Alafield?", "Find it.")
    reply = asyncio.run(pool.named("jory").answer(Request((), seed="0", executor_view=view)))
    assert reply.usage.output_tokens > 0
    assert len(complete(run / "jory", ["Question: Who?\nSubtask: Say it.\nResponse: "], max_tokens=5)) == 1
    # Others may be added later, or by another process at the same time.
    train_orchestra(SETTINGS.model_copy(update={"workers": ("ilka",)}), run)
    assert (run / "ilka" / "tokenizer.json").read_bytes() == (run / "jory" / "tokenizer.json").read_bytes()
    assert open_pool(str(run / "pool.toml")).names == ("ilka", "jory", "vote")
    monkeypatch.setattr(training, "train_worker", None)  # Nothing is left to train.
    train_orchestra(SETTINGS, run)


def test_a_worker_that_another_process_finishes_is_in_the_pool_file(tmp_path, monkeypatch):
    def finish(name):
        (tmp_path / name).mkdir()
        (tmp_path / name / "card.json").write_text("{}")

    def replace_after_the_other_process(path, content):
        if not (tmp_path / "ilka").exists():
            finish("ilka")
            replace_file(path, b"with ilka, and without jory")
        replace_file(path, content)

    RunFolder.open(tmp_path, SETTINGS)
    finish("jory")
    monkeypatch.setattr(training, "replace_file", replace_after_the_other_process)
    train_orchestra(SETTINGS, tmp_path)
    workers = tomllib.loads((tmp_path / "pool.toml").read_text())["worker"]
    assert [worker["name"] for worker in workers] == ["ilka", "jory", "vote"]


def test_transformers_writes_what_the_workers_write_in_numpy():
    facts = world()
    rng = Random("generate")
    relation = RELATIONS["place.mayor"]
    views = [
        view for place in facts.things["place"][:8] for _, view in fact_subtasks(relation, place, facts, rng)
    ]
    prompts = [view_prompt(view) for view in views]
    bela = Path(podium_lab.__file__).parent / "assets" / "orchestra" / "bela"
    written = generate(Checkpoint.read(bela), prompts, 96, "cpu")
    own = complete(bela, prompts)
    # One computes in bf16, the other in fp32.
    assert sum(one == other for one, other in zip(written, own, strict=True)) > 0.9 * len(prompts)
