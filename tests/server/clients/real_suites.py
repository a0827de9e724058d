"""The compliance suites of others, with their own packages, over a served team.

`runs/clients.sh` runs these tests. A failure that is known stands here with its reason.
"""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from client_team import MADE


def probe(*command: str) -> str:
    """What a compliance suite prints; the tests below say what it found."""
    home = MADE / "home"
    home.mkdir(exist_ok=True)
    done = subprocess.run(
        command,
        env=os.environ | {"HOME": str(home), "OPENAI_API_KEY": "x", "NO_COLOR": "1"},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    return done.stdout + done.stderr


def test_compatcanary_finds_nothing(server: str) -> None:
    program = str(MADE / "node/node_modules/.bin/compatcanary")
    said = probe(program, "scan", "--base-url", f"{server}/v1", "--model", "podium")
    assert "Score: 100/100" in said, said


UNSUPPORTED = {
    "openai-chat": set(),
    "anthropic": set(),
    "open-responses": {
        "Streaming Response",  # Its list of events lacks `response.reasoning_summary_text.*`.
        "Streaming Usage",
        "Compaction Endpoint",  # A team keeps no conversation that it could shorten.
        "Compaction Missing Required Model",
    },
}
"""By format of llm-comply: the tests that fail."""


@pytest.mark.parametrize("form", UNSUPPORTED)
def test_llm_comply_reports_only_known_deviations(form: str, server: str) -> None:
    program = str(MADE / "python/bin/llm-comply")
    said = probe(program, "-u", f"{server}/v1", "-m", "podium", "-k", "x", "--format", form, "-v")
    failed = {line.split("✗")[1].partition("(")[0].strip() for line in said.splitlines() if "✗" in line}
    assert "✓" in said, said
    assert failed == UNSUPPORTED[form], said


NOT_CONFORMING = {
    "chat-limits-max-tokens": "the usage sums the whole team; the limit holds for the answer",
    "responses-limits-max-tokens": "the same",
    "messages-limits-max-tokens": "the same",
    "responses-reasoning-effort-none": "the usage counts the progress as reasoning",
    "messages-stop-sequence-echo": "workers do not say which stop sequence ended their answer",
    "messages-assistant-prefill": "a team cannot continue an answer that it did not begin",
}
"""By id of llmprobe's checks: why a team fails it."""


def test_llmprobe_reports_only_known_deviations(server: str) -> None:
    program = str(MADE / "node/node_modules/.bin/llmprobe")
    said = probe(program, f"{server}/v1", "-m", "podium", "-k", "x", "--no-bench", "--no-save", "--json")
    report = json.JSONDecoder().raw_decode(said[said.index("{\n") :])[0]
    failed = {check["id"] for check in report["conformance"]["results"] if check["outcome"] == "fail"}
    assert failed == NOT_CONFORMING.keys()
