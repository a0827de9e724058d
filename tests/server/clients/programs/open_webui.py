"""Open WebUI: its own server in a folder of its own, asked as its page asks it."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from harness import BLUE, NAME, PIXEL, RECALL, TOWN, UNKNOWN, V1, WEATHER, WEATHER_TOOL, get_weather, run

TOOLS = [{"type": "function", "function": WEATHER_TOOL}]
SCHEMA = {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]}
OFFLINE = {"OFFLINE_MODE": "true", "HF_HUB_OFFLINE": "1", "RAG_EMBEDDING_ENGINE": "openai"}


def sent(url, body=None, token=""):
    """The text of the reply, also of an error."""
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode())
    request.add_header("Content-Type", "application/json")
    request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.read().decode()


@contextmanager
def open_webui():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    settings = {"OPENAI_API_BASE_URL": V1, "OPENAI_API_KEY": "x", "ENABLE_OLLAMA_API": "false"}
    with tempfile.TemporaryDirectory() as folder:
        place = {"DATA_DIR": folder, "HOME": folder, "WEBUI_SECRET_KEY": "secret"}
        command = [
            Path(sys.executable).parent / "open-webui",
            "serve",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
        ]
        with (
            (Path(folder) / "log").open("w") as log,
            subprocess.Popen(
                command, env=os.environ | settings | OFFLINE | place, stdout=log, stderr=log
            ) as server,
        ):
            try:
                while True:
                    try:
                        sent(f"{url}/health")
                        break
                    except OSError:
                        assert server.poll() is None, (Path(folder) / "log").read_text()
                        time.sleep(0.5)
                yield url
            finally:
                server.terminate()


with open_webui() as page:
    person = {"name": "Ada", "email": "ada@example.com", "password": "A long-Passw0rd"}
    token = json.loads(sent(f"{page}/api/v1/auths/signup", person))["token"]
    offered = {model["id"] for model in json.loads(sent(f"{page}/api/models", token=token))["data"]}
    assert {"podium", "quill"} <= offered, offered

    def posted(messages, **options):
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        return sent(
            f"{page}/api/chat/completions", {"model": "podium", "messages": messages} | options, token
        )

    def message(messages, **options):
        return json.loads(posted(messages, stream=False, **options))["choices"][0]["message"]

    def deltas(messages, **options):
        lines = posted(messages, stream=True, **options).splitlines()
        chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
        return [chunk["choices"][0]["delta"] for chunk in chunks if chunk.get("choices")]

    def streamed(messages, **options):
        return "".join(delta.get("content") or "" for delta in deltas(messages, **options))

    def second_turn():
        first = {"role": "assistant", "content": message(NAME)["content"]}
        history = [{"role": "user", "content": NAME}, first, {"role": "user", "content": RECALL}]
        return message(history)["content"]

    def results(calls):
        return [
            {
                "role": "tool",
                "tool_call_id": call["id"],
                "content": get_weather(**json.loads(call["function"]["arguments"])),
            }
            for call in calls
        ]

    def tools():
        question = {"role": "user", "content": WEATHER}
        called = message([question], tools=TOOLS)
        return message([question, called, *results(called["tool_calls"])], tools=TOOLS)["content"]

    def streamed_tools():
        question = {"role": "user", "content": WEATHER}
        calls = [call for delta in deltas([question], tools=TOOLS) for call in delta.get("tool_calls") or []]
        called = {"id": calls[0]["id"], "type": "function"}
        called["function"] = {
            "name": calls[0]["function"]["name"],
            "arguments": "".join(call["function"].get("arguments", "") for call in calls),
        }
        history = [question, {"role": "assistant", "tool_calls": [called]}, *results([called])]
        return streamed(history, tools=TOOLS)

    def image():
        picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
        return message([{"role": "user", "content": [{"type": "text", "text": "What is this?"}, picture]}])[
            "content"
        ]

    form = {"type": "json_schema", "json_schema": {"name": "place", "schema": SCHEMA}}
    run(
        {
            "text": lambda: message(BLUE)["content"],
            "stream": lambda: streamed(BLUE),
            "second turn": second_turn,
            "tools": tools,
            "streamed tools": streamed_tools,
            "JSON schema": lambda: json.loads(message(TOWN, response_format=form)["content"])["town"],
            "image": image,
            "thoughts": lambda: message("Think.", model="quill", reasoning_effort="low")["reasoning_content"],
            "unknown model": lambda: posted(BLUE, model=UNKNOWN, stream=False),
        }
    )
