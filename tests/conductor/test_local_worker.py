"""Workers of kind `local`: a model in a folder answers, in one batch with other calls, streamed, stopped and priced."""

import asyncio
import json

import numpy as np
import pytest
from safetensors.numpy import load_file

from podium.conductor import Checkpoint, Sampling, open_policy
from podium.conductor.local_policy import LocalPolicy
from podium.conductor.local_worker import LocalWorker, view_prompt
from podium.errors import ConfigError, WorkerError
from podium.planners import Committee, Single
from podium.team import Runner
from podium.team.team_file import open_pool
from podium.types import AnswerOptions, Message, Question
from podium.workers.base import Request, has_costly_workers, has_paid_workers
from podium.workers.spec import LocalSpec
from podium.workers.view import EarlierStep, WorkerView

SPEC = LocalSpec(kind="local", name="small", path="model")
MESSAGES = (Message(role="user", content="Who founded Rado Mill?"),)


@pytest.fixture
def worker(make_checkpoint, tmp_path):
    make_checkpoint("qwen2", name="model", eos_token_id=None, max_position_embeddings=1024)
    file = tmp_path / "pool.toml"
    file.write_text(
        '[[worker]]\nname = "small"\nkind = "local"\npath = "model"\nprice_compute = true\n'
        'limits = { max_tokens = 24, retries = 0 }\n[[worker]]\nname = "vote"\nkind = "vote"\n'
    )
    return open_pool(str(file)).named("small")


async def test_local_worker_answers_with_the_text_of_its_model(worker, tmp_path):
    written = await open_policy(tmp_path / "model").complete(MESSAGES, Sampling(max_tokens=24))
    reply = await worker.answer(Request(MESSAGES, seed="1"))
    assert reply.text == written.text
    assert (reply.finish, reply.usage.output_tokens) == ("length", 24)
    millions = Checkpoint.read(tmp_path / "model").parameters() / 1e6
    assert reply.cost(worker.profile) == pytest.approx(reply.usage.tokens * millions / 1e6)


def test_a_model_in_several_files_has_no_price_by_its_parameters(worker, tmp_path):
    shard = "model-00001-of-00001.safetensors"
    whole = (tmp_path / "model" / "model.safetensors").rename(tmp_path / "model" / shard)
    index = {"metadata": {}, "weight_map": dict.fromkeys(load_file(whole), shard)}
    whole.with_name("model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ConfigError, match="price_compute counts the parameters of one model"):
        open_pool(str(tmp_path / "pool.toml"))


async def test_streamed_pieces_of_a_local_answer_add_up_to_the_text(worker):
    pieces = []
    reply = await worker.answer(Request(MESSAGES, seed="1", on_text=pieces.append))
    assert "".join(pieces) == reply.text
    assert len(pieces) > 5


async def test_a_stop_text_ends_the_answer_and_is_not_shown(worker):
    whole = (await worker.answer(Request(MESSAGES, seed="1"))).text
    stop = whole[len(whole) // 2 :][:3]
    pieces = []
    options = AnswerOptions(stop=("never written", stop))
    reply = await worker.answer(Request(MESSAGES, seed="1", options=options, on_text=pieces.append))
    assert reply.text == whole[: whole.find(stop)] == "".join(pieces)
    assert reply.finish == "stop"


async def test_local_answer_for_a_seed_is_the_same_in_a_batch(worker):
    options = AnswerOptions(temperature=1.0)
    requests = [Request(MESSAGES, seed=seed, options=options) for seed in ("a", "b", "a")]
    together = await asyncio.gather(*map(worker.answer, requests))
    assert together[0].text == together[2].text != together[1].text
    assert (await worker.answer(requests[1])).text == together[1].text


async def test_a_prompt_that_is_too_long_is_refused_in_a_sentence(worker):
    with pytest.raises(WorkerError, match="reads at most") as refused:
        await worker.answer(Request((Message(role="user", content="word " * 5000),), seed="1"))
    assert (refused.value.kind, refused.value.retryable) == ("context", False)


async def test_a_team_of_local_models_answers_a_question(worker, tmp_path):
    pool = open_pool(str(tmp_path / "pool.toml"))
    for planner in (Single("small"), Committee(("small", "small"))):
        trace = await Runner(planner, pool).answer(Question(text="Who founded Rado Mill?"))
        assert trace.status == "ok", trace.error
        assert trace.cost_usd > 0
    await pool.close()


async def test_local_models_are_real_workers_that_cost_no_money(worker, tmp_path):
    file = tmp_path / "pool.toml"
    endpoint = '[[worker]]\nname = "far"\nkind = "openai"\nmodel = "m"\nbase_url = "http://localhost:1"\n'
    (tmp_path / "both.toml").write_text(file.read_text() + endpoint)
    team = '[[worker]]\nname = "team"\nkind = "podium"\npool = "{}.toml"\nplan.planner = "single:small"\n'
    pools = {}
    for name in ("pool", "both"):
        (tmp_path / f"team-{name}.toml").write_text(team.format(name))
        pools |= {each: open_pool(str(tmp_path / f"{each}.toml")) for each in (name, f"team-{name}")}
    assert all(has_costly_workers(pool) for pool in pools.values())
    assert [has_paid_workers(pool) for pool in pools.values()] == [False, False, True, True]


def test_a_folder_that_is_no_model_is_refused_before_any_call(tmp_path):
    file = tmp_path / "pool.toml"
    file.write_text('[[worker]]\nname = "small"\nkind = "local"\npath = "nothing"\n')
    with pytest.raises(ConfigError, match=r"'small': .*nothing is not a folder"):
        open_pool(str(file))


async def test_a_small_model_reads_the_content_in_short_lines(worker, tmp_path):
    file = tmp_path / "pool.toml"
    file.write_text(file.read_text().replace('path = "model"', 'path = "model"\nreads = "view"'))
    reader = open_pool(str(file)).named("small")
    view = WorkerView("Who?", "Find it.", (EarlierStep(0, "Where?", "There."),), previous="Nobody.")
    prompt = view_prompt(view)
    assert prompt == (
        "Question: Who?\nBefore: Nobody.\nStep 0: Where?\nResponse: There.\nSubtask: Find it.\nResponse: "
    )
    written = await worker.answer(Request((Message(role="user", content=prompt),), seed="1"))
    assert (await reader.answer(Request(MESSAGES, seed="1", executor_view=view))).text == written.text


class ByteCodec:
    """A byte a token."""

    def encode(self, messages):
        return [0]

    def decode(self, tokens):
        return bytes(tokens).decode(errors="replace")


class Told:
    """A model that writes one text, a byte a token."""

    codec, context, eos_token_ids, batch, sharing = ByteCodec(), 1000, frozenset({256}), 4, None

    def __init__(self, text: str) -> None:
        self._bytes = [*text.encode(), 256]

    def start(self, capacity):
        return iter(self._bytes)

    def read(self, chunks):
        rows = np.zeros((len(chunks), 1, 257))
        for row, chunk in zip(rows, chunks, strict=True):
            row[0, next(chunk.cache)] = 1.0
        return rows


@pytest.mark.parametrize("text", ["<think>5? No.</think>\nIt is 4.", "[THINK]5? No.[/THINK]It is 4."])
async def test_thoughts_of_a_local_model_are_no_part_of_its_answer(text):
    worker = LocalWorker(SPEC.model_copy(update={"temperature": 1e-9}), LocalPolicy("told", Told(text)))
    texts, thoughts = [], []
    request = Request(MESSAGES, seed="1", on_text=texts.append, on_reasoning=thoughts.append)
    reply = await worker.answer(request)
    assert (reply.text, reply.reasoning) == ("It is 4.", "5? No.")
    assert ("".join(texts), "".join(thoughts)) == (reply.text, reply.reasoning)


async def test_a_local_model_that_begins_inside_a_thought_shows_no_thoughts():
    worker = LocalWorker(SPEC, LocalPolicy("told", Told("5?\n</think>\n4")))
    texts = []
    for on_text in (None, texts.append):
        reply = await worker.answer(Request(MESSAGES, seed="1", on_text=on_text))
        assert (reply.text, reply.reasoning) == ("4", "5?")
    assert texts == ["4"]


async def test_a_local_model_that_only_thinks_has_no_answer():
    worker = LocalWorker(SPEC, LocalPolicy("told", Told("<think>5?")))
    with pytest.raises(WorkerError, match="wrote no answer"):
        await worker.answer(Request(MESSAGES, seed="1"))
