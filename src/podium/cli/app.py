"""The tree of verbs: the name of each, one line of help and an example. Podium's own are registered here and nowhere
else; an installed package adds one by an entry point of the group "podium.verbs" that names a `Verb`.

The tree has import paths in place of functions, so neither building it nor `podium --help` imports a verb.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from cyclopts import App, Parameter

from podium import __version__


@dataclass(frozen=True, slots=True)
class Verb:
    """One command."""

    words: str
    """The words after `podium`: one verb, or a group and a verb."""
    path: str
    """Its function, as module:function."""
    help: str
    """One line."""
    example: str


VERBS = (
    Verb(
        "init",
        "podium.cli.init:init",
        "Find the models on this machine, and write a team file of them.",
        "podium init\n"
        "podium init --url http://127.0.0.1:18080/v1 --url http://gpu-1:8000/v1 --output gpus.toml\n"
        "podium init --json",
    ),
    Verb(
        "ask",
        "podium.cli.ask:ask",
        "Answer a question with a team of workers, and show the plan.",
        'podium ask "How many days are there from 3 March to 2 May?" --team my-team.toml\n'
        "cat question.txt | podium ask - --team my-team.toml --json > trace.json\n"
        'podium ask "..." --planner single:large budget.calls=3 worker.large.limits.timeout=60',
    ),
    Verb(
        "plan",
        "podium.cli.plan:plan",
        "Show the plan for a question and what it would cost; run nothing.",
        'podium plan "Find the date 60 days after 3 March 2024. Then name the weekday of it." --team my-team.toml',
    ),
    Verb(
        "serve",
        "podium.cli.serve:serve",
        "Serve the team as one model, behind OpenAI's API, with a viewer.",
        "podium serve\n"
        "podium serve --team my-team.toml --budget-usd 0.10\n"
        "podium serve --host 0.0.0.0 --store postgresql://podium@db/podium    # after: podium keys add NAME",
    ),
    Verb(
        "traces list",
        "podium.cli.traces:list_traces",
        "List past questions, newest first.",
        "podium traces list --status failed --since 2d",
    ),
    Verb(
        "traces show",
        "podium.cli.traces:show",
        "Draw one trace: what each worker saw and answered, tokens, dollars, seconds.",
        "podium traces show            # the newest\npodium traces show 3f9a --full",
    ),
    Verb(
        "traces spend",
        "podium.cli.spend:spend",
        "Sum what questions cost, by worker, key, planner or day.",
        "podium traces spend --since 7d\npodium traces spend --by planner --json",
    ),
    Verb(
        "traces outcome",
        "podium.cli.traces:record_outcome",
        "Say whether an answer was right.",
        "podium traces outcome 3f9a --right\npodium traces outcome 3f9a --wrong --note 'The year is 1808.'",
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
        "Import traces from JSONL: the whole file, or nothing if it has an error.",
        "podium traces import all.jsonl\npodium ask ... --json --no-store | podium traces import -",
    ),
    Verb(
        "pool list",
        "podium.cli.pool:list_workers",
        "List the workers of a pool as planners see them.",
        "podium pool list --team my-team.toml",
    ),
    Verb(
        "pool check",
        "podium.cli.pool:check",
        "Ask every worker of a pool one small question.",
        "podium pool check --team my-team.toml",
    ),
    Verb(
        "config show",
        "podium.cli.config:show",
        "Show the value of each setting here, and where it comes from.",
        "podium config show\npodium config show --team teams/large.toml budget.usd=0.10",
    ),
    Verb(
        "trust",
        "podium.cli.trust:trust_file",
        "Let the commands obey the team.toml of a folder, until it changes.",
        "podium trust\npodium trust ./team.toml --yes\npodium trust --list\npodium trust --revoke ./team.toml",
    ),
    Verb(
        "cache show",
        "podium.cli.cache:show",
        "Show how many answers of each worker a response cache has.",
        "podium cache show runs/mine/responses.sqlite",
    ),
    Verb(
        "cache clear",
        "podium.cli.cache:clear",
        "Delete answers from a response cache: all, or the old ones.",
        "podium cache clear answers.sqlite --older 30d",
    ),
    Verb(
        "keys add",
        "podium.cli.keys:add",
        "Make an API key for a server's clients, and print it once.",
        "podium keys add web --budget-usd 5/day --rpm 60 --deny opus\n"
        "podium keys add me --admin --store postgresql://podium@db.example/podium",
    ),
    Verb(
        "keys list",
        "podium.cli.keys:list_keys",
        "List the keys of a server, with their limits and what each has spent.",
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
        "podium tasks show mine.csv --split test --samples 3\npodium tasks show configs/tasks/own.toml",
    ),
    Verb(
        "train",
        "podium.cli.train:train",
        "Train a Conductor by reinforcement or on examples.",
        "podium train --config conductor.toml --run runs/mine grpo.iterations=200 reward.cost=20\n"
        "podium train --run runs/mine --config my-run.toml --dry-run\n"
        "podium train --run runs/mine --config my-run.toml --stage sft",
    ),
    Verb(
        "train push",
        "podium.cli.train:push",
        "Publish the policy of a run, with a model card: to a folder or to the Hugging Face hub.",
        "podium train push runs/mine --to published/mine\n"
        "podium train push runs/mine --to hub:me/my-conductor --private",
    ),
    Verb(
        "eval",
        "podium.cli.evaluation:compare_planners",
        "Compare planners on held-out questions: the team's with workers alone, votes and others, or those of a file.",
        "podium eval --run runs/mine\npodium eval --questions 100 eval.tuning=0 --markdown\n"
        'podium eval compare.toml questions=50 --run runs/compare --declare "A first try."',
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
        "podium record recordings/mine.parquet --team my-team.toml --tasks mine.csv --repeats 3 --run-budget-usd 5",
    ),
    Verb(
        "replay import",
        "podium.cli.replay:import_recording",
        "Make a recording from published answers.",
        "podium replay import table columns.toml recordings/mine.parquet",
    ),
    Verb(
        "replay show",
        "podium.cli.replay:show",
        "Show a recording: its workers, their accuracy, and its source.",
        "podium replay show recordings/easy.parquet",
    ),
    Verb(
        "rate",
        "podium.cli.rate:rate_workers",
        "Rate the workers of a pool on each cluster of similar questions, for planners to read.",
        "podium rate recordings/mine.parquet ratings.json --pool my-replay-pool.toml --clusters 64",
    ),
    Verb(
        "study",
        "podium.cli.study:study",
        "Find out whether a team pays on your questions or traffic, or choose one from many workers.",
        "podium study --team my.toml --tasks mine.csv --run-budget-usd 5 --dry-run\n"
        "podium study --team my.toml --tasks mine.csv --run-budget-usd 5 --yes\n"
        "podium study --preset shadow --team my.toml --share 0.1 --judge large --run-budget-usd 2 --yes\n"
        "podium study --preset compose --pool candidates.toml --tasks mine.csv --run-budget-usd 2",
    ),
    Verb(
        "report",
        "podium.cli.evaluation:report",
        "Write the report of a run: curves, comparison, example plans, controls.",
        "podium report runs/demo",
    ),
)

GROUPS = {
    "traces": "List, show, judge, export and import traces, the records of past questions.",
    "pool": "List and check the workers of a pool.",
    "config": "Show the settings of a team, and where each value comes from.",
    "cache": "Show and delete the paid answers that a response cache keeps.",
    "keys": "Make, list and remove the API keys of a server's clients.",
    "replay": "Make a recording of models' answers from a published source, and show one.",
    "tasks": "List the task sets, and show samples of one.",
}
"""Help of each group of verbs."""


_MAX_NUMBER = 10**15
"""No number of an option is larger (`config.source.MAX_NUMBER`, whose module help does not load)."""


def _check_size(form: object, value: object) -> None:
    """Refuse numbers that no user means; some would fill the memory, or be written nowhere."""
    del form
    if isinstance(value, int | float) and _MAX_NUMBER < abs(value) < inf:
        raise ValueError(f"it is too large; give at most {_MAX_NUMBER:,}.")


def verbs_for(tokens: Sequence[str]) -> tuple[Verb, ...]:
    """Podium's verbs, and those of installed packages unless the command line begins with one of Podium's.

    An installed verb that cannot be loaded, or has the first word of one of Podium's, is a `ConfigError`. Of two with
    the same words, the second is left out, unless the command line begins with their first word.
    """
    own = {verb.words.split()[0] for verb in VERBS}
    if tokens and tokens[0] in own:
        return VERBS
    from podium.plugins import PluginGroup  # noqa: PLC0415 - to load it and to search takes 50 ms

    installed = PluginGroup[Verb]("podium.verbs", "verb", Verb)
    others: dict[str, Verb] = {}
    for name, verb in installed.items():
        first = verb.words.split()[0]
        if first in own or (verb.words in others and first in tokens[:1]):
            raise installed.refusal(name, f"has the words {verb.words!r}, which are taken")
        others.setdefault(verb.words, verb)
    return (*VERBS, *others.values())


def build_app(verbs: Sequence[Verb] = VERBS) -> App:
    """The command line, ready to be called with tokens."""
    app = App(
        name="podium",
        help="An open Conductor: a small language model that leads a team of others.",
        version=__version__,
        help_format="plaintext",
        suppress_keyboard_interrupt=False,
        default_parameter=Parameter(validator=_check_size),
    )
    groups: dict[str, App] = {}
    registered: set[str] = set()
    for verb in verbs:
        group, _, name = verb.words.rpartition(" ")
        if group in registered:  # A verb that has verbs of its own.
            groups[group] = app[group]
        elif group and group not in groups:
            groups[group] = App(name=group, help=GROUPS.get(group))
            app.command(groups[group])
        parent = groups[group] if group else app
        indented = "\n".join(f"    {line}" for line in verb.example.splitlines())
        registered.add(verb.words)
        parent.command(
            verb.path,
            name=name,
            help=verb.help,
            help_epilogue=f"For example:\n\n{indented}",
            help_format="markdown",  # Texts of several lines are wrapped anew. `podium --help` has none.
        )
    return app
