"""POST /api/traces/{id}/outcome over real servers: what is kept, shown, refused, and who may judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from key_storage import KeyStorage
from running_server import Serve


def ask(client: httpx.Client) -> str:
    body = {"model": "podium/single:ada", "messages": [{"role": "user", "content": "What is 6 x 7?"}]}
    return client.post("/v1/chat/completions", json=body).headers["x-podium-trace-id"]


def judge(client: httpx.Client, id_: str, body: Any) -> httpx.Response:
    return client.post(f"/api/traces/{id_}/outcome", json=body)


def found(client: httpx.Client, outcome: str) -> list[str]:
    return [row["id"] for row in client.get("/api/traces", params={"outcome": outcome}).json()["traces"]]


def test_an_outcome_is_shown_with_the_trace_in_the_list_and_in_the_export(
    serve: Serve, tmp_path: Path
) -> None:
    with httpx.Client(base_url=serve(store=tmp_path / "traces.sqlite")) as client:
        first, second = ask(client), ask(client)
        answer = judge(client, first[:12], {"right": False, "note": " It is 42. "})
        assert answer.status_code == 200
        said = answer.json()["outcome"]
        assert said | {"at": ""} == {"right": False, "note": "It is 42.", "by": None, "at": ""}
        assert client.get(f"/api/traces/{first}").json()["outcome"] == said
        assert (found(client, "wrong"), found(client, "none")) == ([first], [second])
        assert {row["id"]: row["outcome"] for row in client.get("/api/traces").json()["traces"]} == {
            first: "wrong",
            second: None,
        }
        assert len(client.get("/api/traces/export", params={"outcome": "wrong"}).text.splitlines()) == 1
        events = client.get(f"/api/traces/{first}/events").text
        assert '"note":"It is 42."' in events.rpartition("event: ended")[2]
        assert judge(client, first, {"right": None, "note": ""}).json() == {"id": first, "outcome": None}
        assert found(client, "wrong") == []


@pytest.mark.parametrize(
    ("body", "param", "said"),
    [
        ({}, "right", "Give `right`: true, false, or null to take the verdict back; or a `note`."),
        ({"right": "yes"}, "right", "right: it should be a valid boolean."),
        ({"rigth": True}, "rigth", "Unknown field 'rigth'; leave it out."),
        ({"note": "x" * 4001}, "note", "note: String should have at most 4000 characters."),
    ],
)
def test_invalid_outcome_is_refused_with_its_field(
    serve: Serve, tmp_path: Path, body: dict[str, Any], param: str, said: str
) -> None:
    with httpx.Client(base_url=serve(store=tmp_path / "traces.sqlite")) as client:
        refused = judge(client, ask(client), body)
        assert refused.status_code == 400
        assert (refused.json()["error"]["param"], refused.json()["error"]["message"]) == (param, said)


def test_a_key_judges_its_own_traces_alone_and_an_admins_key_all(serve: Serve, tmp_path: Path) -> None:
    storage = KeyStorage(str(tmp_path / "traces.sqlite"))
    url = serve(keys=storage.keys(), store=tmp_path / "traces.sqlite")

    def client(name: str) -> httpx.Client:
        key = storage.add(name, admin=name == "root")
        return httpx.Client(base_url=url, headers={"authorization": f"Bearer {key}"})

    with client("ada") as ada, client("bob") as bob, client("root") as root:
        asked = ask(ada)
        assert judge(bob, asked, {"right": False}).status_code == 404
        assert judge(ada, asked, {"right": True}).json()["outcome"]["by"] == "ada"
        assert judge(root, asked, {"right": False}).json()["outcome"]["by"] == "root"
        assert httpx.post(f"{url}/api/traces/{asked}/outcome", json={"right": True}).status_code == 401
