"""GET /api/runs: the runs in a server's folder, whole and as they are written."""

from __future__ import annotations

import json
from pathlib import Path

import httpx

from podium.rollout.run_folder import RunFolder
from podium.store import TraceStore
from podium.trace import Trace
from viewer_traces import keep, of_sums, plain

ROW = {"iteration": 0, "reward": 0.5, "accuracy": 0.25, "valid": 1.0, "steps": 2.0, "workers": {"ada": 1.0}}


def make_run(folder: Path, name: str, rows: int) -> RunFolder:
    run = RunFolder.open(folder / name, {"name": name})
    for number in range(rows):
        run.rows().append({**ROW, "iteration": number})
    return run


def compared(accuracy: float) -> str:
    return json.dumps({"questions": 2, "rows": [{"kind": "single", "accuracy": {"mean": accuracy}}]})


def test_runs_are_found_in_folders_of_folders_and_nothing_else_is(serve, tmp_path: Path) -> None:
    make_run(tmp_path, "one", 2)
    make_run(tmp_path, "deep/er", 1)
    make_run(tmp_path, ".hidden", 1)
    (tmp_path / "evaluated").mkdir()
    (tmp_path / "evaluated" / "comparison.json").write_text(compared(0.75))
    (tmp_path / "recordings").mkdir()
    runs = {run["name"]: run for run in httpx.get(f"{serve(runs=tmp_path)}/api/runs").json()["runs"]}
    assert set(runs) == {"one", "deep/er", "evaluated"}
    assert (runs["one"]["kind"], runs["one"]["iterations"]) == ("training", 2)
    assert runs["one"]["latest"] == {"reward": 0.5, "accuracy": 0.25, "valid": 1.0}
    assert (runs["evaluated"]["kind"], runs["evaluated"]["latest"]) == ("evaluation", {"accuracy": 0.75})


def test_server_works_without_a_folder_of_runs(serve, tmp_path: Path) -> None:
    assert httpx.get(f"{serve(runs=tmp_path / 'none')}/api/runs").json() == {"runs": []}


def test_a_run_is_returned_whole_without_an_unfinished_line(serve, tmp_path: Path) -> None:
    make_run(tmp_path, "deep/er", 3)
    with (tmp_path / "deep/er/metrics.jsonl").open("a") as file:
        file.write('{"iteration": 3, "rew')
    (tmp_path / "deep/er/comparison.json").write_text(compared(0.5).replace("0.5", "NaN"))
    run = httpx.get(f"{serve(runs=tmp_path)}/api/runs/deep/er").json()
    assert [row["iteration"] for row in run["metrics"]] == [0, 1, 2]
    assert run["configuration"] == {"name": "deep/er"}
    assert run["comparison"]["rows"][0]["accuracy"] == {"mean": None}


def test_run_name_cannot_leave_the_folder_of_runs(serve, tmp_path: Path) -> None:
    make_run(tmp_path, "outside", 1)
    make_run(tmp_path / "inside", "run", 1)
    (tmp_path / "inside" / "link").symlink_to(tmp_path / "outside")
    with httpx.Client(base_url=serve(runs=tmp_path / "inside")) as client:
        for name in ("%2e%2e/outside", "link", "run/../../outside", "..%2foutside", "a%00b", "/etc"):
            answer = client.get(f"/api/runs/{name}")
            assert answer.status_code == 404, name
            assert answer.json()["error"]["type"] == "not_found_error"


def test_a_rollout_is_read_from_the_file_that_the_run_is_writing(serve, tmp_path: Path) -> None:
    make_run(tmp_path, "deep/er", 1)
    first, second = of_sums(2)
    with (
        httpx.Client(base_url=serve(runs=tmp_path)) as client,
        TraceStore(tmp_path / "deep/er" / "traces.sqlite") as store,
    ):
        for trace in (first, second):
            assert client.get(f"/api/runs/deep/er/traces/{trace.id}").status_code == 404
            store.add(trace)
            store.flush()
            answer = client.get(f"/api/runs/deep/er/traces/{trace.id}")
            assert Trace.model_validate(answer.json()) == trace


def test_a_trace_that_a_run_does_not_have_is_refused_in_a_sentence(serve, tmp_path: Path) -> None:
    for name in ("traceless", "strange", "run"):
        make_run(tmp_path, name, 1)
    (tmp_path / "strange" / "traces.sqlite").write_text("no database")
    trace = plain()
    keep(tmp_path / "run" / "traces.sqlite", trace)
    with httpx.Client(base_url=serve(runs=tmp_path)) as client:
        said = {
            path: client.get(f"/api/runs/{path}").json()["error"]
            for path in (
                "traceless/traces/1",
                "strange/traces/1",
                f"run/traces/{'0' * 32}",
                "none/traces/1",
            )
        }
    assert {error["type"] for error in said.values()} == {"not_found_error"}
    assert [error["message"] for error in said.values()] == [
        "The run 'traceless' keeps no traces of its rollouts.",
        "The file traces.sqlite of the run 'strange' is no trace store that can be read.",
        f"The run 'run' has no trace '{'0' * 32}'.",
        "There is no run 'none' in the server's folder of runs.",
    ]


def test_a_run_is_sent_again_only_after_something_was_written(serve, tmp_path: Path) -> None:
    run = make_run(tmp_path, "run", 2)
    with httpx.Client(base_url=serve(runs=tmp_path)) as client:
        tags = []

        def changed() -> int | None:
            """The number of rows. None if nothing has changed since the latest reply."""
            reply = client.get("/api/runs/run", headers={"If-None-Match": tags[-1]} if tags else {})
            tags.append(reply.headers["etag"])
            return len(reply.json()["metrics"]) if reply.status_code == 200 else None

        assert [changed(), changed()] == [2, None]
        run.rows().append({**ROW, "iteration": 2})
        assert [changed(), changed()] == [3, None]
        run.rows().truncate(1)
        assert [changed(), changed()] == [1, None]
        (tmp_path / "run" / "comparison.json").write_text(compared(0.5))
        assert [changed(), changed()] == [1, None]
