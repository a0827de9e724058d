"""The limits of workers, divided among processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.errors import UsageError
from podium.team.team_file import open_pool
from podium.team.team_worker import TeamWorker, share_limits
from podium.workers.pool import Pool

PAID = '[[worker]]\nname = "{}"\nkind = "openai"\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\nlimits = {{ {} }}\n'


def pools(folder: Path, limits: str, of: int) -> list[Pool]:
    """The pool of each process: a paid worker, the same in a team, and a vote."""
    (folder / "inner.toml").write_text(PAID.format("ada", limits))
    (folder / "outer.toml").write_text(
        PAID.format("ada", limits)
        + '[[worker]]\nname = "team"\nkind = "podium"\npool = "inner.toml"\nplan.planner = "single:ada"\n'
        + '[[worker]]\nname = "vote"\nkind = "vote"\n'
    )
    opened = [open_pool(str(folder / "outer.toml")) for _ in range(of)]
    for number, pool in enumerate(opened):
        share_limits(pool, number, of)
    return opened


@pytest.mark.parametrize("of", [2, 3, 5])
def test_all_shares_together_are_the_limits_of_the_pool_file(tmp_path: Path, of: int) -> None:
    shared = pools(tmp_path, "concurrency = 5, rpm = 60, tpm = 9000", of)
    teams = [pool.named("team") for pool in shared]
    assert all(isinstance(team, TeamWorker) for team in teams)
    for same in (shared, [team.runner.pool for team in teams]):  # type: ignore[attr-defined]
        shares = [pool.named("ada").limits for pool in same]
        assert sum(share.concurrency for share in shares) == 5
        assert min(share.concurrency for share in shares) >= 1
        assert sum(share.rpm or 0 for share in shares) == pytest.approx(60)
        assert sum(share.tpm or 0 for share in shares) == pytest.approx(9000)


def test_tools_and_workers_without_rates_are_left_alone(tmp_path: Path) -> None:
    whole = open_pool(str(tmp_path / "outer.toml")) if pools(tmp_path, "concurrency = 4", 1) else None
    assert whole is not None
    shared = pools(tmp_path, "concurrency = 4", 2)[0]
    assert shared.named("vote").limits == whole.named("vote").limits
    assert shared.named("ada").limits == whole.named("ada").limits.model_copy(update={"concurrency": 2})


@pytest.mark.parametrize("limit", ["concurrency = 2", "rpm = 2"])
def test_a_limit_below_the_number_of_processes_is_refused(tmp_path: Path, limit: str) -> None:
    with pytest.raises(UsageError, match=f"{limit} of the worker 'ada' cannot be divided among 3 processes"):
        pools(tmp_path, limit, 3)
