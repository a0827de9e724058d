"""verifiers' training client, as prime-rl uses it: prompts become tokens here, and a vLLM engine is sent those."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from eval_run import ACCEPT, LATER, PLANS, lay, options_of, run_vf_eval
from tiny_policy import write_policy

TEMPLATE = (
    "{% for message in messages %}<s>{{ message.role }}\n{{ message.content }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant\n{% endif %}"
)


def tokenizer_in(folder: Path) -> PreTrainedTokenizerBase:
    """A small tokenizer, with a chat template."""
    tokenizer = AutoTokenizer.from_pretrained(write_policy(folder.with_name("policy")))
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    return tokenizer


@asynccontextmanager
async def engine(tokenizer: PreTrainedTokenizerBase) -> AsyncIterator[str]:
    """Answers `/inference/v1/generate` as vLLM does, with written plans."""

    async def generate(request: web.Request) -> web.Response:
        prompt = tokenizer.decode((await request.json())["token_ids"])
        tokens = tokenizer.encode(ACCEPT if LATER in prompt else PLANS[0], add_special_tokens=False)
        tokens.append(tokenizer.eos_token_id)
        logprobs = {"content": [{"token": f"token_id:{token}", "logprob": -1.0} for token in tokens]}
        choice = {"index": 0, "token_ids": tokens, "logprobs": logprobs, "finish_reason": "stop"}
        return web.json_response({"request_id": "1", "choices": [choice]})

    app = web.Application()
    app.router.add_post("/inference/v1/generate", generate)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


def branch(nodes: list[dict[str, Any]], leaf: int) -> list[dict[str, Any]]:
    """The nodes from the root to a leaf."""
    node = nodes[leaf]
    return [*([] if node.get("parent") is None else branch(nodes, node["parent"])), node]


async def test_each_round_is_a_training_sample_of_its_own_tokens(tmp_path: Path) -> None:
    tokenizer = tokenizer_in(tmp_path / "tokenizer")
    async with engine(tokenizer) as url:
        traces, printed = await run_vf_eval(
            tmp_path,
            *options_of(lay(tmp_path, rounds=2, task_limit=1)),
            *("--client.type", "train", "--client.base-url", url, "--client.renderer.name", "default"),
            *("--client.renderer-model-name", str(tmp_path / "tokenizer")),
        )
    assert traces, printed
    nodes = traces[0]["nodes"]
    samples = [branch(nodes, place) for place, node in enumerate(nodes) if node.get("sampled")]
    written = []
    for sample in samples:
        tokens = [token for node in sample for token in node["token_ids"]]
        mask = [sampled for node in sample for sampled in node["mask"]]
        trained = [token for token, sampled in zip(tokens, mask, strict=True) if sampled]
        written.append(tokenizer.decode(trained, skip_special_tokens=True))
        messages = [node["message"] for node in sample[:-1]]
        prompt = tokenizer.apply_chat_template(
            [{"role": message["role"], "content": message["content"]} for message in messages],
            add_generation_prompt=True,
            return_dict=False,
        )
        assert tokens[: len(prompt)] == prompt, json.dumps(messages)[:200]
        assert len(tokens) - len(prompt) == len(trained)
    assert written == [PLANS[0], ACCEPT]
