"""The verbs that this package adds to `podium`. The module imports none of them."""

from podium.cli.app import Verb

SEARCH = Verb(
    "search",
    "podium_research.search.command:search",
    "Search for the file of a planner: TRINITY's head, MASRouter's controller or a constant plan.",
    "podium search trinity --run runs/head pool=my-workers.toml tasks=mine.csv --run-budget-usd 20\n"
    "podium search workflows --run runs/plans pool=my-workers.toml tasks=mine.csv writer=large --dry-run",
)
