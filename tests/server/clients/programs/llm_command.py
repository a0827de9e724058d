"""simonw/llm: the command, with the team as an extra OpenAI model."""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from harness import BLUE, NAME, PIXEL, RECALL, TOWN, UNKNOWN, V1, WEATHER, run

folder = TemporaryDirectory()
home = folder.name
models = "".join(
    f"- model_id: {name}\n  model_name: {name}\n  api_base: {V1}\n  vision: true\n  supports_tools: true\n"
    "  supports_schema: true\n"
    for name in ("podium", UNKNOWN)
)
Path(home, "extra-openai-models.yaml").write_text(models)
Path(home, "tools.py").write_text(
    'def get_weather(town: str) -> str:\n    """The weather in a town."""\n    return f"snow in {town}"\n'
)
Path(home, "pixel.png").write_bytes(__import__("base64").b64decode(PIXEL))


def llm(*words, model="podium"):
    done = subprocess.run(
        [Path(sys.executable).parent / "llm", "-m", model, "--key", "x", *words],
        env=os.environ | {"LLM_USER_PATH": home},
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def second_turn():
    llm(NAME)
    return llm("--continue", RECALL)


run(
    {
        "text": lambda: llm("--no-stream", BLUE),
        "stream": lambda: llm(BLUE),
        "second turn": second_turn,
        "tools": lambda: llm("--no-stream", "--functions", "tools.py", WEATHER),
        "streamed tools": lambda: llm("--functions", "tools.py", WEATHER),
        "JSON schema": lambda: llm("--no-stream", "--schema", "town str", TOWN),
        "image": lambda: llm("-a", "pixel.png", "What is this?"),
        "unknown model": lambda: llm(BLUE, model=UNKNOWN),
    }
)
