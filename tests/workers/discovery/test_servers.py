import socket
import time
from typing import Any

import pytest

from model_server import LLAMA_CPP, LM_STUDIO, OLLAMA, VLLM, ModelServer
from podium.errors import UsageError
from podium.workers.discovery.models import FoundServer
from podium.workers.discovery.servers import find_servers, ollama_address


async def found_at(server: ModelServer, environ: dict[str, str] | None = None) -> FoundServer:
    found = await find_servers([f"{server.url}/v1"], environ or {})
    assert found[0].url == server.url
    return found[0]


async def test_ollama_reports_contexts_and_chat_models() -> None:
    with ModelServer(OLLAMA) as server:
        found = await found_at(server)
    assert found.kind == "Ollama"
    seen = {model.id: model for model in found.models}
    assert list(seen) == ["qwen3:8b", "gemma3:4b", "smollm2:135m"]
    assert found.left_out == (
        "mxbai:large",
        "gpt-oss:120b-cloud (runs at https://ollama.com:443)",
        "minicpm:8b",
    )
    # Loaded, of its own file, by default.
    assert [(model.context_tokens, model.assumed) for model in found.models] == [
        (16384, False),
        (8192, False),
        (4096, True),
    ]
    qwen, gemma = seen["qwen3:8b"], seen["gemma3:4b"]
    assert (qwen.parameters, qwen.largest_context, qwen.thinks) == (8190735360, 40960, True)
    assert (gemma.sees, gemma.calls_tools, gemma.thinks) == (True, False, False)
    assert {model.base_url for model in found.models} == {f"{server.url}/v1"}


async def test_ollama_default_context_applies_to_unloaded_models() -> None:
    with ModelServer(OLLAMA) as server:
        found = await found_at(server, {"OLLAMA_CONTEXT_LENGTH": "65536"})
    assert [model.context_tokens for model in found.models] == [16384, 8192, 8192]


async def test_ollama_without_details_is_read_from_its_model_list() -> None:
    with ModelServer({"/api/tags": OLLAMA["/api/tags"]}) as server:
        found = await found_at(server)
    assert [model.parameters for model in found.models] == [
        8_200_000_000,
        4_300_000_000,
        134_520_000,
        8 * 10**9,
    ]


async def test_an_ollama_model_is_loaded_by_any_of_its_names() -> None:
    running = {"name": "qwen3:latest", "digest": "a1", "context_length": 16384}
    with ModelServer(OLLAMA | {"/api/ps": {"models": [running]}}) as server:
        found = await found_at(server)
    assert (found.models[0].id, found.models[0].context_tokens) == ("qwen3:8b", 16384)
    assert not found.models[0].assumed


async def test_lm_studio_reports_loaded_models_and_their_context() -> None:
    with ModelServer(LM_STUDIO) as server:
        found = await found_at(server)
    assert found.kind == "LM Studio"
    qwen, gemma = found.models
    assert (qwen.id, qwen.context_tokens, qwen.assumed, qwen.concurrency) == (
        "qwen/qwen3-4b-2507",
        12288,
        False,
        4,
    )
    assert (gemma.parameters, gemma.context_tokens, gemma.assumed, gemma.sees) == (
        12 * 10**9,
        4096,
        True,
        True,
    )
    assert found.left_out == ("text-embedding-nomic-embed-text-v1.5",)


async def test_llama_cpp_says_the_context_of_one_slot() -> None:
    with ModelServer(LLAMA_CPP) as server:
        found = await found_at(server)
    (model,) = found.models
    assert found.kind == "llama.cpp"
    assert (model.id, model.context_tokens, model.concurrency) == ("qwen-0.5b", 4096, 4)
    assert (model.parameters, model.largest_context, model.assumed) == (630167424, 32768, False)


async def test_folders_of_a_models_file_say_nothing_of_the_model() -> None:
    path = "/mnt/4t/audio/reasoning/qwen2-0.5b.gguf"
    props = {"default_generation_settings": {"n_ctx": 4096}}
    with ModelServer({"/v1/models": {"data": [{"id": path}]}, "/props": props}) as server:
        found = await found_at(server)
    (model,) = found.models
    assert (model.id, model.parameters, model.thinks) == (path, 500_000_000, False)


async def test_vllm_says_the_context_and_the_root_of_a_name() -> None:
    with ModelServer(VLLM) as server:
        found = await found_at(server)
    (model,) = found.models
    assert (found.kind, model.id, model.parameters, model.context_tokens) == (
        "vLLM",
        "large",
        32 * 10**9,
        40960,
    )
    assert model.concurrency > 1


async def test_sglang_is_no_ollama_though_it_has_ollamas_list_too() -> None:
    row = {"id": "Qwen/Qwen3-4B", "owned_by": "sglang", "root": "Qwen/Qwen3-4B", "max_model_len": 40960}
    tag = {"name": "Qwen/Qwen3-4B", "digest": "sha256:sglang0", "details": {"parameter_size": "unknown"}}
    with ModelServer({"/v1/models": {"data": [row]}, "/api/tags": {"models": [tag]}}) as server:
        found = await found_at(server)
    (model,) = found.models
    assert (found.kind, model.context_tokens, model.assumed) == ("SGLang", 40960, False)
    assert model.concurrency > 1


async def test_llama_swap_is_asked_no_more_at_once_than_it_admits() -> None:
    with ModelServer(LLAMA_SWAP) as server:
        found = await found_at(server)
    assert {model.concurrency for model in found.models} == {10}


async def test_server_that_lists_only_model_names_is_found() -> None:
    with ModelServer({"/v1/models": {"data": [{"id": "a-7b"}, {"id": "bge-m3"}]}}) as server:
        found = await found_at(server)
    assert [(model.id, model.context_tokens) for model in found.models] == [("a-7b", None)]
    assert found.left_out == ("bge-m3",)


@pytest.mark.parametrize(
    ("routes", "said"),
    [
        ({}, "lists no models"),
        ({"/v1/models": 401}, "wants a key"),
        ({**LLAMA_CPP, "/props": 401, "/api/tags": {"models": [{"name": "qwen"}]}}, "wants a key"),
        ({"/v1/models": 503, "/props": 503}, "not ready"),
        ({**LLAMA_CPP, "/props": 503}, "not ready"),
        ({"/v1/models": {"data": [{"id": "podium", "owned_by": "podium"}]}}, "Podium"),
        ({"/v1/models": {"data": [{"id": "bge-m3"}]}}, "no model that chats"),
        ({"/v1/models": {"data": []}}, "no model that chats"),
        (
            {"/v1/models": {"data": [3, {"id": 4}]}, "/api/tags": {"models": "x"}, "/props": [1]},
            "lists no models",
        ),
        (
            {path: {"error": "Unexpected endpoint."} for path in ("/v1/models", "/api/tags", "/props")},
            "lists no models",
        ),
    ],
)
async def test_server_without_chat_models_reports_the_reason(routes: dict[str, object], said: str) -> None:
    with ModelServer(routes) as server:
        found = await found_at(server)
    assert found.models == ()
    assert said in (found.problem or "")


async def test_servers_at_unnamed_addresses_are_not_waited_for() -> None:
    with ModelServer(OLLAMA, delay=5) as slow, socket.create_server(("127.0.0.1", 0)) as silent:
        started = time.monotonic()
        for url in (slow.url, f"http://127.0.0.1:{silent.getsockname()[1]}"):
            found = await find_servers((), {"OLLAMA_HOST": url})
            assert (found[0].url, found[0].models) == (url, ())
        assert time.monotonic() - started < 5


async def test_no_address_is_asked_twice() -> None:
    with ModelServer(LLAMA_CPP) as server:
        port = server.url.rpartition(":")[2]
        named = [server.url, f"localhost:{port}/v1/", f"{server.url}/v1/chat/completions"]
        found = await find_servers(named, {"OLLAMA_HOST": f"127.0.0.1:{port}"})
    assert [one.url for one in found].count(server.url) == 1
    assert server.asked.count("/props") == 1


@pytest.mark.parametrize("listens_at", ["127.0.0.1", "::1"])
async def test_a_server_at_either_address_of_localhost_is_found(
    monkeypatch: pytest.MonkeyPatch, listens_at: str
) -> None:
    def both(host: str | None, port: int, *_: object, **__: object) -> list[Any]:
        assert host == "localhost"
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", port, 0, 0)),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port)),
        ]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    with ModelServer(LLAMA_CPP, host=listens_at) as server:
        url = f"http://localhost:{server.url.rpartition(':')[2]}"
        found = await find_servers([url], {})
    assert (found[0].url, found[0].is_named, len(found[0].models)) == (url, True, 1)


@pytest.mark.parametrize("url", ["", "ftp://a", "http://", "http://me:secret@a", "http://a:99999", "a b"])
async def test_invalid_server_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="is not an address"):
        await find_servers([url], {})


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:1", "http://127.0.0.1:1"),
        (":8081", "http://127.0.0.1:8081"),
        ("gpu-1", "http://gpu-1:11434"),
        (" 'gpu-1:80' ", "http://gpu-1:80"),
        ("http://gpu-1", "http://gpu-1:80"),
        ("https://gpu-1/ollama", "https://gpu-1:443/ollama"),
        ("http://gpu-1:11434/", "http://gpu-1:11434/"),
        ("[::1]", "http://[::1]:11434"),
        ("[::]:5", "http://[::1]:5"),
        ("::1", "http://[::1]:11434"),
    ],
)
def test_ollama_host_has_many_forms(host: str, address: str) -> None:
    assert ollama_address(host) == address


LLAMA_SWAP = {
    "/v1/models": {"data": [{"id": name, "object": "model", "owned_by": "llama-swap"} for name in ("a", "b")]}
}
STATUS = {
    "/v1/models": {
        "data": [
            {"id": name, "object": "model", "status": {"value": value}, "state": value}
            for name, value in {"a": "loaded", "b": "unloaded", "c": "unloaded"}.items()
        ]
    }
}


def router(most: int) -> dict[str, Any]:
    props = {"role": "router", "max_instances": most, "default_generation_settings": {"n_ctx": 0}}
    return {**STATUS, "/props": props}


@pytest.mark.parametrize(
    ("lists", "environ", "held"),
    [
        (OLLAMA, {}, None),
        (OLLAMA, {"OLLAMA_MAX_LOADED_MODELS": "0"}, None),
        (OLLAMA, {"OLLAMA_MAX_LOADED_MODELS": "3"}, 3),
        (LM_STUDIO, {}, None),
        (LLAMA_SWAP, {}, 1),
        (router(2), {}, 2),
        (router(0), {}, None),
        (STATUS, {}, None),
        (LLAMA_CPP, {}, None),
        (VLLM, {}, None),
    ],
    ids=[
        "ollama",
        "ollama, no limit",
        "ollama, set",
        "lm studio",
        "llama-swap",
        "router",
        "router, no limit",
        "a status of another meaning",
        "llama.cpp",
        "vllm",
    ],
)
async def test_only_a_setting_of_a_server_says_how_many_models_it_holds(
    lists: dict[str, Any], environ: dict[str, str], held: int | None
) -> None:
    with ModelServer(lists) as server:
        found = await found_at(server, environ)
    assert {model.loaded_at_once for model in found.models} == {held}
