"""The container's files: the linter accepts them, and what they say to do works.

Containers are not needed: the steps of the Dockerfile and of compose.yaml are followed in a folder, with a real
PostgreSQL. They download packages, so they are followed in the nightly target alone.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
import yaml

from free_port import free_port
from podium_testing import Answer, FaultServer
from postgres_server import DATABASES

ROOT = Path(__file__).parents[1]
DOCKERFILE = ROOT / "Dockerfile"
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())


def test_the_linter_has_nothing_to_say_of_the_dockerfile():
    linter = Path(sys.executable).parent / "hadolint"
    done = subprocess.run([linter, DOCKERFILE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_gets_all_that_the_package_is_built_from_and_no_more():
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    copied = [name for line in steps("COPY") if "--from" not in line for name in shlex.split(line)[:-1]]
    assert sorted(kept) == sorted(copied)


def test_compose_waits_for_the_database_and_gives_the_drain_its_time():
    podium = COMPOSE["services"]["podium"]
    assert podium["depends_on"]["database"]["condition"] == "service_healthy"
    assert int(podium["stop_grace_period"].removesuffix("s")) > 30, "--drain is 30 s"


def steps(instruction: str) -> list[str]:
    """The arguments of all instructions of that name, in order."""
    text = DOCKERFILE.read_text().replace("\\\n", " ")
    return re.findall(rf"^{instruction} (.+)$", text, re.MULTILINE)


@pytest.mark.nightly
@pytest.mark.skipif("postgresql" not in DATABASES, reason="no PostgreSQL on this machine")
def test_dockerfile_steps_produce_a_server_that_answers(tmp_path: Path, postgres_url: str) -> None:
    prefix, source = tmp_path / "opt", tmp_path / "source"
    source.mkdir()
    for line in steps("COPY"):
        if "--from" not in line:
            *names, target = shlex.split(line)
            subprocess.run(["cp", "-r", *names, source / target], cwd=ROOT, check=True)
    build = next(line for line in steps("RUN") if "pip install" in line).replace("/opt/podium", str(prefix))
    bare = {name: value for name, value in os.environ.items() if name.startswith(("PATH", "PIP_", "LANG"))}
    bare["HOME"] = str(tmp_path)
    subprocess.run(["bash", "-euc", build], cwd=source, env=bare, check=True)

    podium = COMPOSE["services"]["podium"]
    (entry,) = json.loads(steps("ENTRYPOINT")[0])
    program = entry.replace("/opt/podium", str(prefix))
    port = free_port()
    with FaultServer(Answer("Answer: 5")).in_thread() as provider:
        pool = tmp_path / "pool.toml"
        pool.write_text(
            f'[[worker]]\nname = "live"\nkind = "openai"\nmodel = "m"\nbase_url = "{provider.url}"\n'
        )
        values = {"POSTGRES_PASSWORD": "x", "PODIUM_TEAM": str(pool)}
        environment = bare | {name: filled(text, values) for name, text in podium["environment"].items()}
        environment |= {"PODIUM_STORE": postgres_url}
        made = subprocess.run(
            [program, "keys", "add", "me", "--admin"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        key = re.search(r"pk-\S+|podium-\S+|sk-\S+", made.stdout + made.stderr)
        assert key is not None, made.stdout
        command = [filled(word, values) for word in podium["command"]]
        server = subprocess.Popen([program, *command, "--port", str(port)], env=environment)
        try:
            address = f"http://127.0.0.1:{port}"
            wait_until_ready(f"{address}/readyz")
            body = {"model": "podium", "messages": [{"role": "user", "content": "What is 2 + 3?"}]}
            request = urllib.request.Request(
                f"{address}/v1/chat/completions",
                json.dumps(body).encode(),
                {"Content-Type": "application/json", "Authorization": f"Bearer {key[0]}"},
            )
            with urllib.request.urlopen(request) as reply:
                assert json.load(reply)["choices"][0]["message"]["content"] == "Answer: 5"
        finally:
            server.terminate()
            assert server.wait(timeout=40) == 0


def filled(text: object, values: dict[str, str]) -> str:
    """A value of compose.yaml with its ${NAME:-default} and ${NAME:?message} replaced."""
    return re.sub(r"\$\{(\w+):[-?]([^}]*)\}", lambda found: values.get(found[1], found[2]), str(text))


def wait_until_ready(address: str) -> None:
    for _ in range(300):
        try:
            with urllib.request.urlopen(address):
                return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(address)
