"""Reads the lists of models of each kind of server, in the forms that real servers use.

A field that is missing or of another type counts as unknown. `servers` sends the requests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from podium.workers.discovery.models import (
    FoundModel,
    FoundServer,
    is_chat_model,
    own_name,
    parameters_in,
)

OLLAMA, LLAMA_CPP = "Ollama", "llama.cpp"
TAGS, _STUDIO, _PROPS, _MODELS = "/api/tags", "/api/v1/models", "/props", "/v1/models"
PATHS = (TAGS, _STUDIO, _PROPS, _MODELS)
"""The paths that every address is asked for."""
_DEFAULT_CONTEXT = 4096
"""The context of a model that Ollama (with less than 24 GiB of graphics memory) or LM Studio loads by itself."""
_AT_ONCE = {"vLLM": 32, "SGLang": 32, "llama-swap": 10}
"""The concurrency for servers that batch without a fixed number of slots, and the most that llama-swap admits: it
refuses an eleventh call of a model, unless its configuration says otherwise."""
_THINKERS = re.compile(r"(?<![a-z])(?:r1|qwq|qwen3|gpt-oss|magistral)(?![a-z])")
_SWAPS = "llama-swap"
_OWNERS = {"vllm": "vLLM", "sglang": "SGLang", _SWAPS: _SWAPS, "llamacpp": LLAMA_CPP}


def read_lists(answers: Mapping[str, Mapping[str, Any]], root: str) -> FoundServer | None:
    """The server that gave these lists, recognised by their form. None if no list has a known form.

    Args:
        answers: the object at each of `PATHS`. It is empty if there is no object.
        root: the address before these paths.
    """
    props, tags = answers.get(_PROPS, {}), _rows(answers.get(TAGS, {}), "models", "name")
    studio = _rows(answers.get(_STUDIO, {}), "models", "key")
    listed = _rows(answers.get(_MODELS, {}), "data", "id")
    if any(row.get("owned_by") == "podium" for row in listed or ()):
        return FoundServer("Podium", root, problem="a server of Podium, which is no worker of itself")
    owners = {str(row.get("owned_by")) for row in listed or ()}
    owner = next((name for owner, name in _OWNERS.items() if owner in owners), None)
    models: Iterable[FoundModel | str]
    is_llama = isinstance(props.get("default_generation_settings"), dict) or owner == LLAMA_CPP
    if is_llama and listed is not None:
        kind, models = LLAMA_CPP, (_of_llama(row, props) for row in listed)
    elif studio is not None:
        kind, models = "LM Studio", (_of_studio(row) for row in studio)
    elif tags is not None and owner is None:  # SGLang has a list in Ollama's form too.
        kind, models = OLLAMA, _of_tags(tags)
    elif listed is not None:
        kind = owner or "OpenAI-compatible"
        models = (_of_list(row, kind) for row in listed)
    else:
        return None
    # The models that are loaded now do not count, since more may fit. A router without a limit says 0.
    held = _count(props.get("max_instances")) if props.get("role") == "router" else None
    held = 1 if kind == _SWAPS else held
    found, left_out = [], []
    for model in models:
        if isinstance(model, FoundModel) and is_chat_model(model.name):
            thinks = model.thinks or _thinks(model.name)
            found.append(
                replace(model, base_url=f"{root}/v1", server=kind, thinks=thinks, loaded_at_once=held)
            )
        else:  # A text is the name of a model that does not chat.
            left_out.append(model if isinstance(model, str) else model.id)
    problem = None if found else "it has no model that chats"
    return FoundServer(kind, root, tuple(found), tuple(left_out), problem)


def ollama_contexts(ps: Mapping[str, Any], tags: Mapping[str, Any]) -> dict[str, int | None]:
    """The context of each loaded model, by all of its names: /api/ps has only the one that it was loaded by."""
    running = _rows(ps, "models", "name") or ()
    contexts = {str(row["digest"]): _count(row.get("context_length")) for row in running if row.get("digest")}
    alike = {row["name"]: contexts.get(str(row.get("digest"))) for row in _rows(tags, "models", "name") or ()}
    return alike | {row["name"]: _count(row.get("context_length")) for row in running}


def with_ollama_details(
    model: FoundModel,
    show: Mapping[str, Any],
    loaded: Mapping[str, int | None],
    default: int | None,
    most_loaded: int | None,
) -> FoundModel | None:
    """A model of Ollama with what /api/show and /api/ps (`ollama_contexts`) say about it. None if it does not chat.

    Args:
        default: the server's context for models that set none. None means Ollama's own default.
        most_loaded: how many models the server may hold. None means as many as fit, a number that the server does not
            tell.
    """
    can = show.get("capabilities")
    if isinstance(can, list) and "completion" not in can:
        return None
    info = show.get("model_info") or {}
    largest = next((_count(value) for key, value in info.items() if key.endswith(".context_length")), None)
    context = loaded.get(model.id)
    written = re.search(r"^num_ctx\s+(\d{1,9})\s*$", str(show.get("parameters", "")), re.MULTILINE)
    assumed = context is None and written is None
    if context is None:
        context = int(written[1]) if written else default or _DEFAULT_CONTEXT
        context = min(context, largest or context)
    return replace(
        model,
        parameters=_count(info.get("general.parameter_count")) or model.parameters,
        context_tokens=context,
        assumed=assumed,
        largest_context=largest,
        loaded_at_once=most_loaded or None,  # For Ollama too, 0 means as many as fit.
        sees=isinstance(can, list) and "vision" in can,
        calls_tools=not isinstance(can, list) or "tools" in can,
        thinks=(isinstance(can, list) and "thinking" in can) or model.thinks,
    )


def _of_llama(row: Mapping[str, Any], props: Mapping[str, Any]) -> FoundModel:
    meta = _object(row.get("meta"))
    settings = _object(props.get("default_generation_settings"))
    template = str(props.get("chat_template", ""))
    return FoundModel(
        row["id"],
        parameters=_count(meta.get("n_params")) or parameters_in(own_name(row["id"])),
        # This is the context of one slot. The model's own figure would be the sum of all slots.
        context_tokens=_count(settings.get("n_ctx")) or _count(meta.get("n_ctx")),
        largest_context=_count(meta.get("n_ctx_train")),
        concurrency=_count(props.get("total_slots")) or 1,
        sees=_object(props.get("modalities")).get("vision") is True,
        thinks="<think>" in template or "enable_thinking" in template,
    )


def _of_studio(row: Mapping[str, Any]) -> FoundModel | str:
    if row.get("type", "llm") != "llm":
        return str(row["key"])
    instances = _rows(row, "loaded_instances", "id") or [{}]
    config, can = _object(instances[0].get("config")), _object(row.get("capabilities"))
    largest, context = _count(row.get("max_context_length")), _count(config.get("context_length"))
    name = str(row["key"])
    return FoundModel(
        str(instances[0].get("id") or name),
        parameters=parameters_in(str(row.get("params_string") or "")) or parameters_in(name),
        context_tokens=context or min(_DEFAULT_CONTEXT, largest or _DEFAULT_CONTEXT),
        assumed=context is None,
        largest_context=largest,
        concurrency=_count(config.get("parallel")) or 1,
        sees=can.get("vision") is True,
    )


def _of_tags(rows: Iterable[Mapping[str, Any]]) -> Iterable[FoundModel | str]:
    seen: set[str] = set()
    for row in rows:
        name, digest = row["name"], str(row.get("digest") or row["name"])
        if digest in seen:
            continue  # A second name of the same model.
        seen.add(digest)
        if row.get("remote_host"):
            yield f"{name} (runs at {row['remote_host']})"
            continue
        size = str(_object(row.get("details")).get("parameter_size") or "")
        yield FoundModel(name, parameters=parameters_in(size) or parameters_in(name))


def _of_list(row: Mapping[str, Any], kind: str) -> FoundModel:
    name = row["id"]
    written = parameters_in(own_name(name)) or parameters_in(str(row.get("root") or "").rpartition("/")[2])
    return FoundModel(
        name,
        parameters=written,
        context_tokens=_count(row.get("max_model_len")),
        concurrency=_AT_ONCE.get(kind, 1),
    )


def _thinks(name: str) -> bool:
    low = name.casefold()
    if "thinking" in low or "reason" in low:
        return True
    # The later instruct and coder models of Qwen 3 do not think.
    return _THINKERS.search(low) is not None and not re.search(r"qwen3.*(?:coder|instruct)", low)


def _rows(answer: Mapping[str, Any], key: str, named: str) -> list[dict[str, Any]] | None:
    """The objects of a list that have a text at `named`. None if there is no list."""
    rows = answer.get(key)
    if not isinstance(rows, list):
        return None
    found = [row for row in rows if isinstance(row, dict) and isinstance(row.get(named), str) and row[named]]
    return found if found or not rows else None


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
