"""The tree of verbs: names, one line of help each, and an example; wired here and nowhere else.

Every verb is named by its import path, so that building the tree and `podium --help` load none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cyclopts import App, ArgumentCollection

from podium import __version__

FillOptions = Callable[[App, tuple[str, ...], ArgumentCollection], None]
"""As the parser calls it: with the command line, the words of the verb, and the verb's arguments."""


@dataclass(frozen=True, slots=True)
class Verb:
    """One command."""

    words: str
    """As typed after `podium`: one word, or a group and a verb."""
    path: str
    """Where its function is, as module:function."""
    help: str
    """One line."""
    example: str


VERBS = (
    Verb(
        "ask",
        "podium.cli.ask:ask",
        "Answer a question with a team of workers, and show how.",
        'podium ask "Find the date 60 days after 3 March 2024. Then name the weekday of it."\n'
        "cat question.txt | podium ask - --json > trace.json\n"
        'podium ask "..." --pool my-workers.toml --conductor-url https://api.openai.com/v1 \\\n'
        "    --conductor-model gpt-5 --conductor-key-env OPENAI_API_KEY",
    ),
    Verb(
        "plan",
        "podium.cli.plan:plan",
        "Show the plan for a question and what it would cost; run nothing.",
        'podium plan "Find the date 60 days after 3 March 2024. Then name the weekday of it." --pool my-workers.toml',
    ),
    Verb(
        "serve",
        "podium.cli.serve:serve",
        "Serve the team as one model, behind OpenAI's API, with a viewer.",
        "podium serve\n"
        "podium serve --pool my-workers.toml --budget-usd 0.10\n"
        "podium serve --host 0.0.0.0 --store postgresql://podium@db/podium    # after: podium keys add NAME",
    ),
    Verb(
        "traces list",
        "podium.cli.traces:list_traces",
        "List what was asked, newest first.",
        "podium traces list --status failed --since 2d",
    ),
    Verb(
        "traces show",
        "podium.cli.traces:show",
        "Draw one trace: who saw what, tokens, money, time.",
        "podium traces show            # the newest\npodium traces show 3f9a --full",
    ),
    Verb(
        "traces export",
        "podium.cli.traces:export",
        "Write traces as JSONL, oldest first.",
        "podium traces export all.jsonl\npodium traces export --status ok | gzip > ok.jsonl.gz",
    ),
    Verb(
        "traces import",
        "podium.cli.traces:import_traces",
        "Read traces from JSONL, all of the file or nothing.",
        "podium traces import all.jsonl\npodium ask ... --json --no-store | podium traces import -",
    ),
    Verb(
        "pool list",
        "podium.cli.pool:list_workers",
        "List the workers of a pool as planners see them.",
        "podium pool list --pool my-workers.toml",
    ),
    Verb(
        "pool check",
        "podium.cli.pool:check",
        "Ask every worker of a pool one small question.",
        "podium pool check --pool my-workers.toml",
    ),
    Verb(
        "config show",
        "podium.cli.config:show",
        "Show which settings hold here, and where each is from.",
        "podium config show\npodium config show --config team/podium.toml --budget-usd 0.10",
    ),
    Verb(
        "cache show",
        "podium.cli.cache:show",
        "Show what a response cache holds.",
        "podium cache show runs/mine/responses.sqlite",
    ),
    Verb(
        "cache clear",
        "podium.cli.cache:clear",
        "Make a response cache forget replies, all or the old ones.",
        "podium cache clear answers.sqlite --older 30d",
    ),
    Verb(
        "keys add",
        "podium.cli.keys:add",
        "Make a key for a server's callers, and print it once.",
        "podium keys add web --budget-usd 5/day --rpm 60 --deny opus\n"
        "podium keys add me --admin --store postgresql+asyncpg://podium@db.example/podium",
    ),
    Verb(
        "keys list",
        "podium.cli.keys:list_keys",
        "List the keys of a server, what they may do and have spent.",
        "podium keys list",
    ),
    Verb(
        "keys remove",
        "podium.cli.keys:remove",
        "Remove a key; running servers refuse it within a second.",
        "podium keys remove web",
    ),
    Verb(
        "tasks list",
        "podium.cli.tasks:list_sets",
        "List the task sets and their splits.",
        "podium tasks list",
    ),
    Verb(
        "tasks show",
        "podium.cli.tasks:show",
        "Show questions of a task set with their answers.",
        "podium tasks show embedded --split test --samples 3\npodium tasks show configs/tasks/own.toml",
    ),
    Verb(
        "tasks overlap",
        "podium.cli.tasks:overlap",
        "Look for a set's questions in other sets and files.",
        "podium tasks overlap mine.toml --split test --against corpus.txt --against gsm8k:train",
    ),
    Verb(
        "train",
        "podium.cli.train:train",
        "Train a Conductor by reinforcement, or make the policy that it starts from.",
        "podium train --run runs/mine grpo.iterations=200 reward.cost=20\n"
        "podium train --run runs/mine --config my-run.toml\n"
        "podium train --run runs/warm --stage warmstart",
    ),
    Verb(
        "eval",
        "podium.cli.evaluation:compare_planners",
        "Compare the Conductor with every baseline on held-out questions.",
        "podium eval --run runs/mine\npodium eval --questions 100 --tuning 0 --markdown",
    ),
    Verb(
        "score-server",
        "podium.cli.score_server:score_server",
        "Run, grade and reward plans over HTTP, for trainers and notebooks.",
        "podium score-server --config my-run.toml --run runs/scoring --run-budget-usd 20\n"
        "podium score-server --config my-run.toml --run runs/scoring --host 0.0.0.0 --port 8500 --key-env SCORING_KEY",
    ),
    Verb(
        "record",
        "podium.cli.record:record",
        "Record what every worker of a pool answers to a task set.",
        "podium record recordings/mine.parquet --pool my-workers.toml --questions 500 --samples 3 --budget-usd 5",
    ),
    Verb(
        "replay import",
        "podium.cli.replay:import_recording",
        "Make a recording from answers that others have published, or from a store of traces.",
        "podium replay import reasoning-gym reasoning-gym-eval/.../zero-shot/easy recordings/easy.parquet\n"
        "podium replay import zeroeval ZeroEval/result_dirs/gsm recordings/gsm.parquet\n"
        "podium replay import table columns.toml recordings/mine.parquet",
    ),
    Verb(
        "replay show",
        "podium.cli.replay:show",
        "Show what a recording holds.",
        "podium replay show recordings/easy.parquet",
    ),
    Verb(
        "rate",
        "podium.cli.rate:rate_workers",
        "Rate the workers of a pool, kind by kind of question, for planners to read.",
        "podium rate recordings/mine.parquet ratings.json --pool my-replay-pool.toml --clusters 64",
    ),
    Verb(
        "report",
        "podium.cli.evaluation:report",
        "Write the report of a run: curves, comparison, example plans.",
        "podium report runs/demo",
    ),
)

GROUPS = {
    "traces": "List, show, export and import what was asked and what happened.",
    "pool": "List the workers of a pool, and check that each answers.",
    "config": "Settings of podium.toml: show what holds, and where each value is from.",
    "cache": "Answers that were paid for and are kept: show what there is, and forget it.",
    "keys": "Keys with which others may ask a server: make, list and remove them.",
    "replay": "Recordings of what models answered: make one, and show what it holds.",
    "tasks": "List the task sets, show samples of one, and look for its questions elsewhere.",
}
"""Help of the words that verbs begin with."""


def build_app(fill: FillOptions | None = None) -> App:
    """The command line, ready to be called with tokens.

    Args:
        fill: gives the parser the options that a command line leaves out; None: they have their defaults.
    """
    app = App(
        name="podium",
        help="An open Conductor: a small language model that leads a team of others.",
        version=__version__,
        help_format="plaintext",
        suppress_keyboard_interrupt=False,
        config=fill,
    )
    groups: dict[str, App] = {}
    for verb in VERBS:
        group, _, name = verb.words.rpartition(" ")
        if group and group not in groups:
            groups[group] = App(name=group, help=GROUPS[group])
            app.command(groups[group])
        parent = groups[group] if group else app
        indented = "\n".join(f"    {line}" for line in verb.example.splitlines())
        parent.command(verb.path, name=name, help=verb.help, help_epilogue=f"For example:\n{indented}")
    return app
