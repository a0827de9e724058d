"""An endpoint whose model writes calc.py and runs its test with the tools that a coding agent brings.

    python scripted_coder.py FOLDER

The model follows a script: one call that writes the file, one that runs the test, then a text with what the test said.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from podium.types import ToolCall
from podium_testing import Answer, FaultServer

CODE = "def add(a, b):\n    return a + b\n"
TEST = "python3 test_calc.py"
FILE = str(Path(sys.argv[1]) / "calc.py")
SCRIPTS: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "exec_command": (
        ("exec_command", {"cmd": f"cat > calc.py <<'X'\n{CODE}X", "yield_time_ms": 30_000}),
        ("exec_command", {"cmd": TEST, "yield_time_ms": 30_000}),
    ),
    "Write": (
        ("Write", {"file_path": FILE, "content": CODE}),
        ("Bash", {"command": TEST, "description": "Run the test"}),
    ),
    "write": (
        ("write", {"filePath": FILE, "content": CODE}),
        ("bash", {"command": TEST, "description": "Run the test"}),
    ),
}
"""By the name of a tool that tells the agents apart: the calls, in order."""


def coder(messages: list[dict[str, Any]], body: dict[str, Any]) -> Answer:
    """The next call of the script, or the report after the last."""
    tools = {tool["function"]["name"] for tool in body.get("tools") or ()}
    script = next((calls for name, calls in SCRIPTS.items() if name in tools), ())
    done = sum(len(message.get("tool_calls") or ()) for message in messages if message["role"] == "assistant")
    if done < len(script):
        name, arguments = script[done]
        return Answer("", tool_calls=(ToolCall(id=f"c{done}", name=name, arguments=json.dumps(arguments)),))
    if "file listing" in str(messages):  # aider has no tools: the reply holds the whole file
        return Answer(f"calc.py\n```\n{CODE}```")
    if not script:
        return Answer("calc")  # a title, a summary or the like
    return Answer(f"The test says: {'passed' if 'passed' in str(messages[-1]['content']) else 'failed'}.")


async def main() -> None:
    async with FaultServer(coder) as server:
        print(server.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
