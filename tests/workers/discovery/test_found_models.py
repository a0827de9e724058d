import pytest

from podium.workers.discovery.models import is_chat_model, parameters_in


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("qwen2.5-coder:1.5b", 1_500_000_000),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", 30_000_000_000),
        ("mixtral:8x7b", 56_000_000_000),
        ("gemma-3-270m-it", 270_000_000),
        ("gemma3n:e4b", 4_000_000_000),
        ("Qwen2.5-7B-Instruct-1M", 7_000_000_000),
        ("494.03M", 494_030_000),
        ("8.2B", 8_200_000_000),
        ("kimi-k2-1t", 10**12),
        ("phi-3.5-mini-4bit", None),
        ("my-model", None),
        ("", None),
    ],
)
def test_a_name_says_how_many_parameters_a_model_has(name: str, parameters: int | None) -> None:
    assert parameters_in(name) == parameters


@pytest.mark.parametrize(
    "name",
    [
        "nomic-embed-text:latest",
        "text-embedding-3-small",
        "BAAI/bge-m3",
        "Qwen/Qwen3-Reranker-8B",
        "Qwen3-Embedding-0.6B",
        "whisper-large-v3",
        "jina-reranker-v2",
        "all-minilm:22m",
        "mxbai-embed-large",
        "intfloat/e5-mistral-7b",
        "Alibaba-NLP/gte-Qwen2-7B",
        "tts-1-hd",
        "gpt-4o-transcribe",
        "dall-e-3",
        "gpt-image-1",
        "omni-moderation-latest",
        "meta-llama/Llama-Guard-4-12B",
        "llama-guard3:8b",
        "shieldgemma:2b",
        "stable-diffusion-xl",
        "FLUX.1-schnell",
        "gpt-realtime",
    ],
)
def test_models_that_do_not_chat_are_recognised_by_name(name: str) -> None:
    assert not is_chat_model(name)


@pytest.mark.parametrize(
    "name",
    [
        "qwen3:8b",
        "gpt-5",
        "llama3.1",
        "deepseek-r1:8b",
        "devstral",
        "gemma3n:e4b",
        "grok-4",
        "claude-sonnet-4-5",
    ],
)
def test_models_that_chat_are_kept(name: str) -> None:
    assert is_chat_model(name)
