"""The kind litellm without its library; with it, `runs/litellm.sh` makes the calls of litellm_calls.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from podium.errors import ConfigError
from podium.team.team_file import open_pool
from podium.types import Limits
from podium.workers import Worker
from podium.workers.litellm import LiteLLMWorker
from podium.workers.redaction import Secrets
from podium.workers.spec import LiteLLMSpec

SECRET = "hush-hush-1234567890"


def pool_file(folder: Path, keys: str = "") -> Path:
    path = folder / "pool.toml"
    path.write_text(f"[[worker]]\nname = 'haiku'\nkind = 'litellm'\nmodel = 'bedrock/x'\n{keys}\n")
    return path


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a library of that name is installed which must not be imported; its version is in its metadata."""
    place = tmp_path / "site"
    (place / "litellm").mkdir(parents=True)
    (place / "litellm" / "__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.delitem(sys.modules, "litellm", raising=False)
    return place


def install(place: Path, version: str) -> None:
    metadata = place / f"litellm-{version}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: litellm\nVersion: {version}\n")


def test_without_the_library_the_pool_is_refused_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    path = pool_file(tmp_path)
    with pytest.raises(ConfigError) as refused:
        open_pool(path)
    assert str(refused.value) == (
        f"{path}, line 3: Worker 'haiku': the kind litellm needs the litellm library; "
        "pip install 'podium-conductor[litellm]'."
    )


@pytest.mark.parametrize("version", ["1.82.7", "1.82.8"])
def test_a_release_that_steals_keys_is_refused_and_not_imported(
    tmp_path: Path, release: Path, version: str
) -> None:
    install(release, version)
    with pytest.raises(ConfigError, match=f"litellm {version} is a release that steals credentials"):
        open_pool(pool_file(tmp_path))
    assert "litellm" not in sys.modules


def test_unused_litellm_worker_does_not_import_litellm(tmp_path: Path, release: Path) -> None:
    install(release, "1.106.2")
    pool = open_pool(pool_file(tmp_path))
    assert pool.names == ("haiku",)
    assert isinstance(pool[0], Worker)
    assert "litellm" not in sys.modules


async def test_closing_a_worker_that_was_never_called_imports_nothing(tmp_path: Path, release: Path) -> None:
    install(release, "1.106.2")
    pool = open_pool(pool_file(tmp_path))
    await pool.close()
    assert "litellm" not in sys.modules


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ("api_key_env = 'NO_SUCH_KEY'", "the environment variable NO_SUCH_KEY is not set; put the key there"),
        (
            "env = ['NO_SUCH_KEY']",
            "the environment variable NO_SUCH_KEY is not set; set it, or leave it out of env.",
        ),
        (
            "extra = { api_key = 'hush' }",
            "'api_key' looks like a secret; name its environment variable in env.",
        ),
        (
            "extra = { aws_secret_access_key = 'hush' }",
            "'aws_secret_access_key' looks like a secret; name its",
        ),
        ("extra = { num_retries = 3 }", "num_retries cannot be set in extra; leave it out."),
        ("temperature = -1", "worker.haiku.temperature is -1, but it should be greater than or equal to 0."),
        ("modell = 'x'", "unknown key 'worker.haiku.modell'; did you mean 'model'?"),
    ],
)
def test_a_model_that_cannot_be_called_is_refused_when_the_pool_is_loaded(
    tmp_path: Path, release: Path, keys: str, sentence: str
) -> None:
    install(release, "1.106.2")
    path = pool_file(tmp_path, keys)
    with pytest.raises(ConfigError) as refused:
        open_pool(path)
    assert sentence in str(refused.value)
    assert str(refused.value).startswith(f"{path}, line 5: ")
    assert "hush" not in str(refused.value)


def test_litellm_identity_has_answer_settings_but_no_key() -> None:
    spec = LiteLLMSpec(
        name="haiku",
        kind="litellm",
        model="bedrock/x",
        limits=Limits(max_tokens=9),
        system="Be brief.",
        extra={"top_p": 0.5},
    )
    worker = LiteLLMWorker(spec, Secrets(), SECRET)
    assert worker.identity == {
        "kind": "litellm",
        "url": None,
        "model": "bedrock/x",
        "system": ["Be brief."],
        "max_tokens": 9,
        "temperature": None,
        "seed": False,
        "extra": {"top_p": 0.5},
    }
    assert SECRET not in repr(worker)
