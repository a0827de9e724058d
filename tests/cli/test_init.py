import json
import os
import pty
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import Podium
from loaded_programs import loaded_podium
from model_server import LLAMA_CPP, LM_STUDIO, OLLAMA, VLLM, ModelServer
from podium.team.team_file import open_pool
from podium.workers.discovery.providers import known_providers
from refused_commands import one_sentence


@pytest.fixture(autouse=True)
def _nothing_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """No team file, and no key of whoever runs the tests."""
    Path("pool.toml").unlink()
    for provider in known_providers():
        for key in provider.keys:
            monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with ModelServer(OLLAMA) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url.removeprefix("http://"))
        yield server


@pytest.fixture
def llama() -> Iterator[ModelServer]:
    with ModelServer(LLAMA_CPP) as server:
        yield server


def written(path: str = "team.toml") -> dict[str, dict[str, object]]:
    """The workers of a team file that can be opened, by name."""
    open_pool(path)
    return {worker["name"]: worker for worker in tomllib.loads(Path(path).read_text())["worker"]}


def test_init_writes_and_checks_a_pool_of_local_models(podium: Podium, ollama, llama) -> None:
    done = podium("init", "--url", f"{llama.url}/v1")
    assert (done.status, done.err) == (0, "")
    workers = written()
    models = [name for name, worker in workers.items() if worker["kind"] == "openai"]
    assert models[:2] == ["qwen3-8b", "gemma3-4b"]
    assert set(models) >= {"qwen-0.5b", "smollm2-135m"}
    conductor = tomllib.loads(Path("team.toml").read_text())["conductor"]
    assert conductor == {"worker": "qwen3-8b", "prompt": {"style": "short"}}
    assert {"calculator", "vote"} < set(workers)
    assert all(worker["profile"] for worker in workers.values() if worker["kind"] == "openai")
    assert "conductor:qwen3-8b" in done.out  # Its plan was tried.
    assert 'podium ask "' in done.out
    asked = podium("ask", "How many days?", "--json", "--no-store")  # Who had it written trusts it.
    assert json.loads(asked.out)["answer"] == "Answer: 60"


def test_each_worker_is_asked_within_the_context_that_is_set(podium: Podium, ollama, llama) -> None:
    podium("init", "--url", llama.url)
    workers = written()
    assert {name: workers[name]["context_tokens"] for name in ("qwen3-8b", "gemma3-4b", "smollm2-135m")} == {
        "qwen3-8b": 16384,
        "gemma3-4b": 8192,
        "smollm2-135m": 4096,
    }
    for name in ("qwen3-8b", "gemma3-4b", "smollm2-135m", "qwen-0.5b"):
        limits = workers[name]["limits"]
        assert isinstance(limits, dict)
        assert 2 * limits["max_tokens"] <= workers[name]["context_tokens"]
    assert workers["qwen-0.5b"]["limits"]["concurrency"] == 4  # type: ignore[index]
    assert (workers["gemma3-4b"]["sees"], workers["gemma3-4b"]["calls_tools"]) == (True, False)


@pytest.mark.parametrize(
    ("routes", "model", "base"), [(LM_STUDIO, "google/gemma-3-12b", "gemma-3-12b"), (VLLM, "large", "large")]
)
def test_lm_studio_and_vllm_are_found_at_an_address(podium: Podium, routes, model: str, base: str) -> None:
    with ModelServer(routes) as server:
        assert podium("init", "--url", server.url, "--output", "team/mine.toml").status == 0
    worker = written("team/mine.toml")[base]
    assert (worker["model"], worker["base_url"]) == (model, f"{server.url}/v1")


def test_the_models_of_a_server_that_was_named_are_chosen_first(podium: Podium, ollama) -> None:
    with ModelServer({"/v1/models": {"data": [{"id": f"mine-{n}-0.1b"} for n in range(5)]}}) as server:
        assert podium("init", "--url", server.url).status == 0
    assert {worker["model"] for worker in written().values() if worker["kind"] == "openai"} == {
        f"mine-{n}-0.1b" for n in range(5)
    }


def test_init_json_has_found_servers_and_proposal_on_one_line(podium: Podium, llama) -> None:
    done = podium("init", "--url", llama.url, "--json")
    assert (done.status, done.out.count("\n")) == (0, 1)
    found = json.loads(done.out)
    server = next(one for one in found["servers"] if one["url"] == llama.url)
    assert (server["kind"], server["models"][0]["context_tokens"]) == ("llama.cpp", 4096)
    assert found["proposal"] == tomllib.loads(Path(found["written"]).read_text())
    assert {check["worker"]: check["answered"] for check in found["checks"]}["qwen-0.5b"]


@pytest.mark.parametrize("name", ["team.toml", "team"])
def test_init_never_overwrites_an_existing_file(podium: Podium, llama, name: str) -> None:
    Path("team").mkdir()
    Path("team.toml").write_text("# Mine.")
    refused = podium("init", "--url", llama.url, "--output", name)
    assert refused.status == 2
    assert "--output" in one_sentence(refused)
    assert Path("team.toml").read_text() == "# Mine."
    assert llama.asked == []


def test_a_team_that_is_written_elsewhere_is_named_in_the_next_commands(podium: Podium, llama) -> None:
    done = podium("init", "--url", llama.url, "--output", "my teams/gpus.toml")
    assert done.status == 0
    assert "--team 'my teams/gpus.toml'" in done.out


def test_init_writes_nothing_where_trust_cannot_be_kept(
    podium: Podium, llama, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/dev/null/x")
    refused = podium("init", "--url", llama.url, "--output", "new/team.toml")
    assert (refused.status, "trusted.json" in refused.err) == (2, True)
    assert not Path("new").exists()


def test_init_without_any_model_prints_a_remedy(podium: Podium) -> None:
    with ModelServer({"/v1/models": {"data": [{"id": "bge-m3"}]}}) as server:
        done = podium("init", "--url", server.url)
    assert done.status == 1
    assert "ollama serve" in done.err
    assert not Path("team.toml").exists()


def test_a_worker_that_does_not_answer_is_told_and_the_file_stays(podium: Podium) -> None:
    routes = {"/v1/models": {"data": [{"id": "a-7b"}]}}
    with ModelServer(routes, chats=False) as server:
        done = podium("init", "--url", server.url)
    assert done.status == 1
    assert "failed" in done.out
    assert "--planner self-fusion:a-7b:3" in done.out  # The way on without a Conductor.
    assert "a-7b" in written()


@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_init_with_only_an_api_key_sends_and_writes_nothing(
    podium: Podium, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    with ModelServer({}) as provider:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody")
        monkeypatch.setenv("HTTPS_PROXY", provider.url)
        done = podium("init", *arguments)
    assert done.status == 1
    assert "OPENAI_API_KEY" in done.err
    assert "sk-of-somebody" not in done.out + done.err
    assert provider.asked == []
    assert not Path("team.toml").exists()


def test_init_proposes_only_free_workers_despite_an_api_key(
    podium: Podium, monkeypatch: pytest.MonkeyPatch, llama
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-somebody")
    done = podium("init", "--url", llama.url)
    assert done.status == 0
    assert "ANTHROPIC_API_KEY" in done.out
    assert all("api_key_env" not in worker for worker in written().values())


def test_init_leaves_providers_out_after_a_no_on_a_terminal(llama) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, b"n\n")
    done = subprocess.run(
        [loaded_podium(), "init", "--url", llama.url],
        stdin=theirs,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OPENAI_API_KEY": "sk-of-somebody", "HTTPS_PROXY": "http://127.0.0.1:9"},
    )
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 0, done.stderr
    assert "[y/N]" in done.stderr
    assert all("api_key_env" not in worker for worker in written().values())


@pytest.mark.parametrize("verb", ["ask", "plan"])
def test_ask_without_a_pool_names_init(podium: Podium, verb: str) -> None:
    refused = podium(verb, "What is 2 + 3?")
    assert refused.status == 2
    assert "podium init" in refused.err
    Path("team.toml").write_text("[budget]\nusd = 1.0\n")
    assert podium(verb, "What is 2 + 3?").status == 2
