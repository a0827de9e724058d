import pytest
from pydantic import SecretStr

from model_server import ModelServer
from podium.types import Price
from podium.workers.discovery.models import FoundModel
from podium.workers.discovery.providers import (
    FoundKey,
    Provider,
    found_keys,
    known_providers,
    list_models,
)

KNOWN = (
    FoundModel("big-1", price=Price(input=3.0, output=15.0), about="Strong.", sees=True),
    FoundModel("gone", price=Price(input=9.0, output=9.0), about="Retired."),
    FoundModel("small-1", price=Price(input=0.1, output=0.3), about="Quick."),
)


def key(url: str, **more: object) -> FoundKey:
    return FoundKey(
        Provider("Maker", ("MAKER_KEY",), url, KNOWN, **more), "MAKER_KEY", SecretStr("sk-secret-of-mine")
    )  # type: ignore[arg-type]


def test_keys_are_found_by_name_the_usual_one_first() -> None:
    environ = {"GOOGLE_API_KEY": "a", "GEMINI_API_KEY": "b", "XAI_API_KEY": " ", "MISTRAL_API_KEY": "c"}
    assert [(key.provider.name, key.env) for key in found_keys(environ)] == [
        ("Google", "GEMINI_API_KEY"),
        ("Mistral", "MISTRAL_API_KEY"),
    ]
    assert "b" not in repr(found_keys({"GEMINI_API_KEY": "b"})[0].value)


async def test_priced_models_of_a_provider_list_are_kept_in_order() -> None:
    rows = [{"id": "models/small-1"}, {"id": "big-1"}, {"id": "other"}, 3]
    with ModelServer({"/v1/models": {"data": rows}}) as server:
        found = await list_models(key(f"{server.url}/v1", key_header="x-api-key", headers={"version": "1"}))
    assert [model.id for model in found.models] == ["big-1", "small-1"]
    big = found.models[0]
    assert (big.price, big.key_env, big.sees) == (Price(input=3.0, output=15.0), "MAKER_KEY", True)
    sent = {name.lower(): value for name, value in server.headers[0].items()}
    assert (sent["x-api-key"], sent["version"]) == ("sk-secret-of-mine", "1")


@pytest.mark.parametrize("said", [401, 500, {"data": 3}, {}, {"data": [{"id": "other"}]}])
async def test_without_a_list_a_provider_has_no_models_and_says_why(said: object) -> None:
    with ModelServer({"/v1/models": said}) as server:
        found = await list_models(key(f"{server.url}/v1"))
    assert found.models == ()
    assert found.problem
    assert "sk-secret-of-mine" not in found.problem


def test_each_provider_has_priced_models_and_keys() -> None:
    for provider in known_providers():
        assert provider.keys
        assert provider.base_url.startswith("https://")
        for model in provider.models:
            assert model.price is not None
            assert model.price.input > 0
            assert model.price.output > 0
            assert model.about
            assert model.context_tokens
