"""How three published models conduct untrained: the files of a suite, and its table.

    python runs/real_models.py files FOLDER URL URL URL [--gsm8k FILE]
    python runs/real_models.py table FOLDER

The URLs are those of smol, qwen-0.5b and qwen-1.5b, as `runs/published_models.py` serves them. `files` writes a pool
for each plan format and prompt style, two task sets, and two suites for `podium eval`: `suite.toml` has the whole
table, and `plans.toml` the plans that are asked for in the best way that a probe finds, which needs no step to run
(budget.calls=0). `table` prints what the results in the folder `run` say so far; a row says on how many questions it
stands. Both task sets come with podium-research, which `make setup` installs. FILE is GSM8K's training questions as
JSON lines, where the model hub cannot be reached.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from podium.evals.answer_files import AnswerFiles
from podium.evals.suite.manifest import SUITE, SuiteManifest
from podium.rollout import Rollout

MODELS = {
    "smol": "SmolLM2, 135 million parameters. Fast; knows short facts and writes simple sentences.",
    "qwen-0.5b": "Qwen2.5-Coder, 0.5 billion parameters. Easy arithmetic, short code, rewording.",
    "qwen-1.5b": "Qwen2.5-Coder, 1.5 billion parameters. The strongest: mathematics step by step, and code.",
}
FORMATS = {
    "text": ("text", ""),
    "json": ("json", ""),
    "schema": ("schema", ""),
    "thought, schema": ("schema", ", think = true"),
    "auto": ("auto", ""),
}
"""By its name in the table: `plans` of the table [conductor], and what is added to its prompt. "auto" is in
`plans.toml` alone, since it is one of the others."""
STYLES = ("full", "short")
FAMILIES = (
    "chain_sum",
    "count_bits",
    "fraction_simplification",
    "gcd",
    "isomorphic_strings",
    "lcm",
    "leg_counting",
    "number_sorting",
    "prime_factorization",
    "spell_backward",
)
"""Of reasoning-gym: some that a program solves and a small model does not, and some where it is the other way round."""
PER_SET = 100

POOL = """# Three published models and a Python interpreter; {title} prompt, plans by: {form}.
[conductor]
worker = "qwen-1.5b"
plans = "{plans}"
prompt = {{ style = "{title}"{more} }}
"""
WORKER = """
[[worker]]
name = "{name}"
kind = "openai"
model = "{name}"
base_url = "{url}"
temperature = 0.0
profile = "{profile}"
limits = {{ max_tokens = 400, concurrency = 4, timeout = 900, retries = 1 }}
"""
PYTHON = """
[[worker]]
name = "python"
kind = "code"
profile = "No model: runs the Python program that an earlier step was told to write, and gives what it prints."
"""


def pool_name(form: str, style: str) -> str:
    """The file of a pool, without its ending."""
    return f"{form.replace(', ', '-')}-{style}"


def write_files(folder: Path, urls: Sequence[str], gsm8k: Path | None) -> None:
    """Write pools, task sets and suite into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    # The strongest first, as podium init has it: small models begin with whoever they read first.
    workers = "".join(
        WORKER.format(name=name, url=url, profile=profile)
        for (name, profile), url in reversed([*zip(MODELS.items(), urls, strict=True)])
    )
    for (form, (plans, more)), style in product(FORMATS.items(), STYLES):
        head = POOL.format(title=style, form=form, plans=plans, more=more)
        (folder / f"{pool_name(form, style)}.toml").write_text(head + workers + PYTHON)
    words = "gsm8k" if gsm8k is None else str(_own_set(folder, gsm8k))
    families = json.dumps(FAMILIES)
    per_family = PER_SET // len(FAMILIES)
    puzzles = folder / "puzzles.toml"
    puzzles.write_text(
        f'name = "puzzles"\n\n[[part]]\nset = "reasoning-gym"\ngenerators = {families}\nsize = {per_family}\n'
    )
    rows = "".join(f'\n[[planner]]\nplanner = "conductor:{name}"\n' for name in MODELS)
    sets = "".join(f"\n[[tasks]]\nname = {json.dumps(str(name))}\n" for name in (words, puzzles))
    # They are what small models can follow, and a table is looked at before it is whole.
    schemas_first = [form for form in reversed(FORMATS) if form != "auto"]
    for suite, forms in {"suite": schemas_first, "plans": ["auto"]}.items():
        pools = "".join(
            f'\n[[pool]]\nname = {json.dumps(str(folder / pool_name(form, style)))[:-1]}.toml"\n'
            for form, style in product(forms, STYLES[::-1])
        )
        (folder / f"{suite}.toml").write_text(
            f'title = "Published models that conduct untrained"\nsplit = "train"\nquestions = {PER_SET}\n'
            f"max_steps = 4\nconcurrency = 4\n{rows}{sets}{pools}"
        )


def _own_set(folder: Path, gsm8k: Path) -> Path:
    """GSM8K's questions from a file, as a task set of one's own."""
    with gsm8k.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    with (folder / "gsm8k.jsonl").open("w", encoding="utf-8") as out:
        for number, row in enumerate(rows):
            gold = row["answer"].rpartition("####")[2].strip().replace(",", "")
            out.write(json.dumps({"nr": number, "question": row["question"], "gold": gold}) + "\n")
    path = folder / "gsm8k.toml"
    path.write_text(
        'name = "gsm8k"\n\n[[part]]\nset = "own"\nfile = "gsm8k.jsonl"\nid = "nr"\ngold = "gold"\n'
        'question = "{question}\\n\\nEnd with a line of the form\\nAnswer: NUMBER"\n'
        '\n[part.grader]\nkind = "math"\n'
    )
    return path


def table(folder: Path) -> None:
    """Print the table of what was answered so far."""
    manifest, results = SuiteManifest.load(folder / "run" / SUITE), AnswerFiles(folder / "run")
    by_pool: dict[str, dict[str, list[Rollout]]] = {}
    for part in manifest.tables:
        rows = by_pool.setdefault(Path(part.settings.pool.name).stem, {})
        for row in part.rows:
            for file in row.files:
                kept = results.answers(file.key).values()
                rows.setdefault(row.label.partition(":")[2], []).extend(kept)
    workers = [*MODELS, "python"]
    head = ("model", "plans by", "prompt", "questions", "read at once", "read", "right", "right given read")
    more = ("steps", "tokens of the plan", "seconds of the plan", *(f"calls of {name}" for name in workers))
    print(f"| {' | '.join((*head, *more))} |")
    print(f"| --- | --- | --- |{' ---: |' * (len(head) + len(more) - 3)}")
    for model, form, style in product(MODELS, FORMATS, STYLES):
        rollouts = by_pool.get(pool_name(form, style), {}).get(model, [])
        if rollouts:
            print(f"| {' | '.join((model, form, style, *_cells(rollouts, workers)))} |")


def _cells(rollouts: Sequence[Rollout], workers: Sequence[str]) -> list[str]:
    count = len(rollouts)
    firsts = [rollout.trace.rounds[0] for rollout in rollouts]
    at_once = sum(first.error is None and not first.plan.rejected for first in firsts)
    read = [rollout for rollout, first in zip(rollouts, firsts, strict=True) if first.error is None]
    right = sum(rollout.correct for rollout in rollouts)
    right_read = sum(rollout.correct for rollout in read)
    calls = Counter(span.worker for rollout in read for span in rollout.trace.spans if span.called)
    return [
        str(count),
        _share(at_once, count),
        _share(len(read), count),
        _share(right, count),
        _share(right_read, len(read)),
        f"{sum(rollout.steps for rollout in read) / max(1, len(read)):.2f}",
        f"{sum(first.plan.spent.usage.output_tokens for first in firsts) / count:.0f}",
        f"{sum(first.plan.seconds for first in firsts) / count:.1f}",
        *(str(calls[name]) for name in workers),
    ]


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "none"


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["files", folder, *urls, "--gsm8k", file] if len(urls) == len(MODELS):
            write_files(Path(folder).absolute(), urls, Path(file))
        case ["files", folder, *urls] if len(urls) == len(MODELS):
            write_files(Path(folder).absolute(), urls, None)
        case ["table", folder]:
            table(Path(folder))
        case _:
            raise SystemExit((__doc__ or "").partition("\n\n")[2].partition("\n\n")[0])
