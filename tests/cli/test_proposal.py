import pytest

from podium.cli.proposal import USUAL_PORT, free_port, propose
from podium.types import Price
from podium.workers.discovery.models import FoundModel, FoundServer

HERE = "http://127.0.0.1:11434/v1"


def local(name: str, billions: float | None = None, **more: object) -> FoundModel:
    parameters = None if billions is None else round(billions * 10**9)
    return FoundModel(name, HERE, "Ollama", parameters=parameters, **more)  # type: ignore[arg-type]


def paid(name: str, base_url: str = "https://api.openai.com/v1") -> FoundModel:
    return FoundModel(name, base_url, "Maker", price=Price(input=1, output=2), key_env="KEY", about="Strong.")


def test_proposal_uses_the_largest_model_as_conductor_and_five_as_workers() -> None:
    found = [local(f"m{n}", n) for n in (1, 7, 3, 5, 2, 6)] + [local("unknown")]
    proposal = propose(found, isolates=False)
    assert proposal.names == ("m7", "m6", "m5", "m3", "m2")
    assert proposal.conductor == "m7"
    assert [model.id for model in proposal.left_out] == ["m1", "unknown"]
    assert proposal.tools == ("calculator", "vote")
    assert "code" in propose(found, isolates=True).tools


def test_preferred_models_work_however_weak_they_are() -> None:
    strong, weak = [local(f"m{n}", n) for n in (7, 6, 5, 4, 3)], local("mine", 0.5)
    proposal = propose([*strong, weak], isolates=False, preferred=[weak])
    assert proposal.names == ("m7", "m6", "m5", "m4", "mine")
    assert [model.id for model in proposal.left_out] == ["m3"]


def test_profiles_tell_a_models_name_and_not_its_folder() -> None:
    found = [local("/home/me/code/models/qwen3-4b.gguf", 4), local("qwen2.5-coder:1.5b", 1.5)]
    plain, coder = propose(found, isolates=False).tables["worker"][:2]
    assert "code" not in plain["profile"]
    assert "code" in coder["profile"]


@pytest.mark.parametrize("found", [[local("small"), local("large")], [local("a", 7), local("b", 7)]])
def test_no_model_is_called_the_strongest_where_no_size_tells(found: list[FoundModel]) -> None:
    profiles = [worker.get("profile", "") for worker in propose(found, isolates=False).tables["worker"]]
    assert not [profile for profile in profiles if "strongest" in profile or "weakest" in profile]


def test_proposed_port_avoids_ports_of_local_model_servers() -> None:
    def at(url: str, *, answers: bool = True) -> FoundServer:
        return FoundServer("llama.cpp", url, answers=answers)

    here = f"http://127.0.0.1:{USUAL_PORT}"
    assert free_port([at(here, answers=False), at(f"http://gpu-1:{USUAL_PORT}")]) == USUAL_PORT
    assert free_port([at(here), at(f"http://localhost:{USUAL_PORT + 1}")]) == USUAL_PORT + 2


def test_names_are_short_apart_and_free_of_the_marks_of_planners() -> None:
    found = [
        local("Qwen/Qwen3-8B", 9),
        local("a/Qwen3-8B", 8),
        local("8x7b:latest", 7),
        local("qwen3:4b+x", 4),
    ]
    assert propose([*found, local("vote", 1)], isolates=False).names == (
        "Qwen3-8B",
        "Qwen3-8B-2",
        "model-8x7b",
        "qwen3-4b-x",
        "vote-2",
    )


def test_a_free_call_never_falls_back_to_a_paid_one() -> None:
    proposal = propose([local("a", 70), local("b", 8), paid("gpt"), paid("mini")], isolates=False)
    workers = {worker["name"]: worker for worker in proposal.tables["worker"]}
    assert proposal.conductor == "gpt"
    assert [workers[name].get("fallback") for name in ("gpt", "mini", "a", "b")] == [None, "gpt", None, None]
    assert workers["gpt"]["api_key_env"] == "KEY"
    assert (workers["gpt"]["price"]["output"], workers["a"]["price"]["output"]) == (2, 0)
    assert proposal.is_paid


def test_proposal_caps_openrouter_prices_at_the_listed_price() -> None:
    (worker, *_) = propose([paid("m/x", "https://openrouter.ai/api/v1")], isolates=False).tables["worker"]
    assert worker["extra"] == {"provider": {"max_price": {"prompt": 1.0, "completion": 2.0}}}


def test_a_small_or_assumed_context_is_told() -> None:
    proposal = propose(
        [local("a", 7, context_tokens=2048), local("b", 1, context_tokens=4096, assumed=True)], isolates=False
    )
    small, assumed = proposal.notes
    assert small.startswith("a conducts with a context of 2,048")
    assert assumed.startswith("Not loaded")
    assert ": b;" in assumed


def test_a_conductor_under_four_billion_parameters_is_told_of() -> None:
    (note,) = propose([local("a", 3), local("b", 1)], isolates=False).notes
    assert "a has 3 B parameters" in note
    assert "--planner single:a" in note
    assert propose([local("a", 4), local("b", 1)], isolates=False).notes == []


def test_a_model_that_thinks_may_write_more() -> None:
    thinker = local("a", 7, context_tokens=32768, thinks=True)
    workers = propose([thinker, local("b", 1, context_tokens=32768)], isolates=False).tables["worker"]
    assert [worker["limits"]["max_tokens"] for worker in workers[:2]] == [8192, 4096]
    assert "thinks first" in workers[0]["profile"]


def test_models_that_do_not_fit_together_name_the_machine_that_they_share() -> None:
    found = [local("a", 9, loaded_at_once=1), local("b", 8, loaded_at_once=1), paid("gpt")]
    workers = {
        worker["name"]: worker["limits"] for worker in propose(found, isolates=False).tables["worker"][:3]
    }
    for name in "ab":
        assert (workers[name]["host"], workers[name]["loaded_at_once"]) == ("127.0.0.1:11434", 1)
    assert "host" not in workers["gpt"]
    fitting = propose([local("a", 9, loaded_at_once=2), local("b", 8, loaded_at_once=2)], isolates=False)
    assert all("host" not in worker["limits"] for worker in fitting.tables["worker"][:2])
