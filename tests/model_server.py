"""A server of models on this machine, as far as `podium init` meets one: its lists as given, and its chats."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from time import sleep
from typing import Any, Self

PLAN = 'model_id = [0]\nsubtasks = ["Answer the question."]\naccess_list = [[]]'


class ModelServer:
    """Answers each path as told; a number is a status. Chats say "ready" when asked to, else a plan, or the answer.

    Args:
        routes: by path, a JSON document, a status, or both. What is posted to /api/show is looked up by model.
        delay: seconds before each answer.
        chats: whether it answers chats; else their status is 500.
        host: the address at which it listens.
    """

    def __init__(
        self, routes: Mapping[str, Any], *, delay: float = 0.0, chats: bool = True, host: str = "127.0.0.1"
    ) -> None:
        self.asked: list[str] = []
        self.headers: list[Mapping[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(routes.get(self.path, 404))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.path.endswith("/chat/completions"):
                    self._answer(_chat(body) if chats else 500)
                else:
                    said = routes.get(self.path, {})
                    self._answer(said.get(body.get("model"), 404) if isinstance(said, Mapping) else said)

            def _answer(self, said: Any) -> None:
                outer.asked.append(self.path)
                outer.headers.append(dict(self.headers))
                if delay:
                    sleep(delay)
                if isinstance(said, int):
                    said = (said, {"error": {"message": "No."}})
                status, document = said if isinstance(said, tuple) else (200, said)
                content = json.dumps(document).encode()
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)
                except ConnectionError:
                    pass  # The client has waited long enough.

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

        self._server = Server((host, 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _chat(body: Mapping[str, Any]) -> dict[str, Any]:
    asked = str(body["messages"])
    if "the one word: ready" in asked:
        text = "ready"
    else:
        text = "Answer: 60" if "model_id" not in asked and "steps" not in asked else PLAN
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


# The forms of real servers, cut to what matters.

OLLAMA = {
    "/api/tags": {
        "models": [
            {"name": "qwen3:8b", "digest": "a1", "details": {"family": "qwen3", "parameter_size": "8.2B"}},
            {
                "name": "qwen3:latest",
                "digest": "a1",
                "details": {"family": "qwen3", "parameter_size": "8.2B"},
            },
            {"name": "gemma3:4b", "digest": "b2", "details": {"family": "gemma3", "parameter_size": "4.3B"}},
            {
                "name": "smollm2:135m",
                "digest": "c3",
                "details": {"family": "llama", "parameter_size": "134.52M"},
            },
            {"name": "mxbai:large", "digest": "d4", "details": {"family": "bert", "parameter_size": "334M"}},
            {"name": "minicpm:8b", "digest": "e5", "details": {"family": "bert", "parameter_size": "8B"}},
            {"name": "gpt-oss:120b-cloud", "digest": "f6", "remote_host": "https://ollama.com:443"},
        ]
    },
    "/api/ps": {"models": [{"name": "qwen3:8b", "context_length": 16384}]},
    "/api/show": {
        "qwen3:8b": {
            "capabilities": ["completion", "tools", "thinking"],
            "model_info": {"general.parameter_count": 8190735360, "qwen3.context_length": 40960},
            "parameters": 'stop "<|im_end|>"\nnum_ctx                        8192',
        },
        "gemma3:4b": {
            "capabilities": ["completion", "vision"],
            "model_info": {"general.parameter_count": 4299915632, "gemma3.context_length": 131072},
            "parameters": "num_ctx                        8192\ntemperature                    1",
        },
        "smollm2:135m": {
            "capabilities": ["completion", "tools"],
            "model_info": {"general.parameter_count": 134515008, "llama.context_length": 8192},
        },
        "minicpm:8b": {"capabilities": ["embedding"], "model_info": {}},
    },
    "/v1/models": {"object": "list", "data": [{"id": "qwen3:8b", "object": "model", "owned_by": "library"}]},
}
LM_STUDIO = {
    "/api/v1/models": {
        "models": [
            {
                "type": "llm",
                "key": "qwen/qwen3-4b-2507",
                "params_string": "4B",
                "loaded_instances": [
                    {"id": "qwen/qwen3-4b-2507", "config": {"context_length": 12288, "parallel": 4}}
                ],
                "max_context_length": 262144,
                "capabilities": {"vision": False, "trained_for_tool_use": True},
            },
            {
                "type": "llm",
                "key": "google/gemma-3-12b",
                "params_string": "12B",
                "loaded_instances": [],
                "max_context_length": 131072,
                "capabilities": {"vision": True, "trained_for_tool_use": False},
            },
            {"type": "embedding", "key": "text-embedding-nomic-embed-text-v1.5", "loaded_instances": []},
        ]
    },
    "/v1/models": {"data": [{"id": "qwen/qwen3-4b-2507", "object": "model"}]},
}
LLAMA_CPP = {
    "/props": {
        "default_generation_settings": {"n_ctx": 4096, "params": {}},
        "total_slots": 4,
        "model_alias": "qwen-0.5b",
        "modalities": {"vision": False, "audio": False},
        "chat_template": "{% for message in messages %}",
    },
    "/v1/models": {
        "models": [{"name": "qwen-0.5b", "capabilities": ["completion"]}],
        "object": "list",
        "data": [
            {
                "id": "qwen-0.5b",
                "object": "model",
                "owned_by": "llamacpp",
                "meta": {"n_ctx": 16384, "n_ctx_train": 32768, "n_params": 630167424, "size": 485452288},
            }
        ],
    },
}
VLLM = {
    "/v1/models": {
        "object": "list",
        "data": [
            {
                "id": "large",
                "object": "model",
                "owned_by": "vllm",
                "root": "Qwen/Qwen3-32B",
                "max_model_len": 40960,
            }
        ],
    }
}
