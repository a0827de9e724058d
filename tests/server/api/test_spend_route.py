"""GET /api/spend over real servers: who sees whose dollars, what the budgets leave, and what is refused."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import httpx

from key_storage import KeyStorage
from podium.spending.shared_spend_limit import SharedSpendLimit
from podium.store.spend_report import MAX_DAYS
from viewer_traces import keep, plain

DAYS = {"since": "2026-03-01", "until": "2026-03-02"}


def store_of(path: Path, *owners: str | None) -> Path:
    """A question of each owner, on the first days of March."""
    trace = plain()
    return keep(
        path,
        *(
            trace.model_copy(
                update={"id": f"{n:032x}", "owner": owner, "started_at": f"2026-03-0{n}T12:00:00Z"}
            )
            for n, owner in enumerate(owners, 1)
        ),
    )


def test_a_key_sees_its_own_sums_and_budget_and_an_admin_all(serve, tmp_path: Path) -> None:
    store = store_of(tmp_path / "traces.sqlite", "shop", "lab")
    storage = KeyStorage(str(store))
    shop, caller = asyncio.run(storage.added("shop", budget="5/day"))
    keys = {"shop": shop, "lab": storage.add("lab", budget="5/day"), "boss": storage.add("boss", admin=True)}

    async def spend() -> None:
        key_store = storage.open()
        await key_store.settle(caller.id or "", datetime.now(UTC).strftime("%Y-%m-%d"), 2 * 10**9, 0)
        await key_store.close()

    asyncio.run(spend())
    url = serve(store=store, keys=storage.keys())

    def asked(name: str) -> tuple[list[str], list[tuple[str, float]]]:
        headers = {"Authorization": f"Bearer {keys[name]}"}
        reply = httpx.get(f"{url}/api/spend", params=DAYS | {"by": "key"}, headers=headers).json()
        assert reply["total"]["questions"] == len(reply["groups"])
        return sorted(group["name"] for group in reply["groups"]), [
            (budget["key"], budget["left_usd"]) for budget in reply["budgets"]
        ]

    assert asked("shop") == (["shop"], [("shop", 3.0)])
    assert asked("lab") == (["lab"], [("lab", 5.0)])
    assert asked("boss") == (["lab", "shop"], [("shop", 3.0), ("lab", 5.0)])
    assert httpx.get(f"{url}/api/spend").status_code == 401


def test_the_servers_budget_of_the_day_is_told(serve, tmp_path: Path) -> None:
    url = serve(store=store_of(tmp_path / "traces.sqlite", None))
    spend_limit = SharedSpendLimit(None, "day", 2.0)
    spend_limit.reserve(0.5)
    spend_limit.settle(0.0, 0.25)
    service = serve.service(url)
    service.call_state = service.call_state.with_spend_limits(spend_limit)
    (budget,) = httpx.get(f"{url}/api/spend", params=DAYS).json()["budgets"]
    assert budget == {
        "key": None,
        "period": "day",
        "limit_usd": 2.0,
        "spent_usd": 0.25,
        "reserved_usd": 0.5,
        "left_usd": 1.25,
    }


def test_the_last_thirty_days_are_the_default_and_each_day_has_its_sum(serve, tmp_path: Path) -> None:
    url = serve(store=store_of(tmp_path / "traces.sqlite", None, None))
    reply = httpx.get(f"{url}/api/spend", params={"until": "2026-03-30"}).json()
    assert (reply["since"], reply["by"], reply["total"]["questions"]) == ("2026-03-01", "worker", 2)
    ada = next(group for group in reply["groups"] if group["name"] == "ada")
    assert [day["day"] for day in ada["days"]] == ["2026-03-01", "2026-03-02"]
    assert httpx.get(f"{url}/api/spend").json()["total"]["questions"] == 0


def test_invalid_spend_query_is_refused_in_a_sentence(serve, tmp_path: Path) -> None:
    url = serve(store=store_of(tmp_path / "traces.sqlite", None))
    for query, said in [
        ({"since": "2026-03-02", "until": "2026-03-01"}, "the last day is before the first"),
        ({"since": "2000-01-01", "until": "2026-03-01"}, f"give from 1 to {MAX_DAYS:,} days"),
        ({"since": "yesterday"}, "since"),
        ({"by": "colour"}, "by"),
        ({"worker": "ada"}, "worker"),
    ]:
        reply = httpx.get(f"{url}/api/spend", params=query)
        assert reply.status_code in (400, 422), query
        assert said in reply.json()["error"]["message"]


def test_spend_accepts_the_first_and_last_days_of_the_calendar(serve, tmp_path: Path) -> None:
    url = serve(store=store_of(tmp_path / "traces.sqlite", None))
    reply = httpx.get(f"{url}/api/spend", params={"until": "9999-12-31"})
    assert (reply.status_code, reply.json()["groups"]) == (200, [])
    reply = httpx.get(f"{url}/api/spend", params={"until": "0001-01-02"})
    assert (reply.status_code, reply.json()["groups"]) == (200, [])
