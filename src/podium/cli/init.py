"""`podium init`: looks for models on this machine, proposes a team of them, writes its team file and checks it."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from podium.cli.found_files import FILE, FoundFiles
from podium.cli.options import Flag
from podium.cli.output_files import parent_folder, refuse_existing
from podium.cli.pool import CHECKING, print_check_results
from podium.cli.printable import counted, printable, say
from podium.cli.proposal import USUAL_PORT, Proposal, describe_size, free_port, propose
from podium.cli.terminal import confirm, open_console, print_json
from podium.cli.trust import trust
from podium.config.toml import toml_text
from podium.errors import ConfigError, GraderError, UsageError
from podium.sandbox.sandbox_pool import SandboxPool
from podium.team.health_check import CheckResult, check_team
from podium.team.team_file import TeamReference
from podium.workers.discovery.models import FoundModel, FoundServer
from podium.workers.discovery.providers import FoundKey, found_keys, list_models
from podium.workers.discovery.servers import find_servers

_CHECK_S = 120.0
"""Seconds for each answer of the check: a server may have to load its model first."""
_SHOWN = 8
"""Models of one server that are named."""


@dataclass(frozen=True, slots=True)
class _Found:
    servers: tuple[FoundServer, ...]
    providers: tuple[FoundServer, ...]
    """Those that the user agreed to ask."""
    keys: tuple[FoundKey, ...]

    @property
    def models(self) -> list[FoundModel]:
        return [model for server in (*self.servers, *self.providers) for model in server.models]


def init(
    *,
    url: Annotated[list[str] | None, Parameter(name="--url", negative="")] = None,
    output: Path = Path(FILE),
    yes: Flag = False,
    json: Flag = False,
) -> int:
    """Find the models on this machine and write a team file of them; returns 1 if there are none or one fails.

    It looks for Ollama, LM Studio, llama.cpp and vLLM, and for keys of known providers in the environment. It sends
    nothing to a provider before you agree.

    Args:
        url: The address of a further server, as http://127.0.0.1:18080/v1, whose models are chosen first. May be given
            several times.
        output: The team file to write. It must not exist yet.
        yes: Agree to every question: use paid models too, of the providers whose keys are set, and pay for the check.
        json: Print what was found, proposed and checked as one line of JSON, and ask you nothing.
    """
    refuse_existing([output], "move {them} away", option="--output")
    found = _find_models(url or (), yes=yes, json=json)
    if not found.models:
        if json:
            print_json(_document(found, None, output, ()))
        say(f"podium: {_nothing_found(found)}", stderr=True)
        return 1
    preferred = [model for server in found.servers if server.is_named for model in server.models]
    proposal = propose(found.models, isolates=asyncio.run(_isolates()), preferred=preferred)
    _write_team_file(output, proposal)
    if not json:
        _print_written(output, proposal, found)
    results: Sequence[CheckResult] = ()
    pays = "Check the workers now? Each answers one small question, for a fraction of a cent."
    if not proposal.is_paid or yes or (not json and confirm(pays)):
        with open_console(stderr=True).status(CHECKING):
            results = asyncio.run(check_team(TeamReference(str(output)).read(), _CHECK_S))
    if json:
        print_json(_document(found, proposal, output, results))
    else:
        _print_end(output, proposal, results, free_port(found.servers))
    return 0 if all(result.answered for result in results) else 1


def _find_models(urls: Sequence[str], *, yes: bool, json: bool) -> _Found:
    """All models that are here, printed as they are found unless the output is JSON."""
    servers, keys = asyncio.run(find_servers(urls)), found_keys()
    if not json:
        _print_servers(servers)
    providers = []
    for key in keys:
        question = f"{key.env} is set. Propose models of {key.provider.name} too? They cost money."
        if yes or (not json and confirm(question)):
            providers.append(asyncio.run(list_models(key)))
    if not json:
        _print_servers(providers)
    return _Found(servers, tuple(providers), keys)


async def _isolates() -> bool:
    async with aclosing(SandboxPool()) as pool:
        try:
            return not (await pool.isolation()).weak
        except (ConfigError, GraderError):
            return False


def _write_team_file(output: Path, proposal: Proposal) -> None:
    with parent_folder(output):
        notes = "".join(f"# {printable(note)}\n" for note in proposal.notes)
        head = f"# Written by podium init. docs/workers.md says what else a worker can have.\n{notes}\n"
        try:
            with output.open("x", encoding="utf-8") as file:
                file.write(head + toml_text(proposal.tables))
        except OSError as error:
            raise UsageError(
                f"{output} cannot be written: {error.strerror}; name another --output."
            ) from None
        if output.name == FILE:
            try:
                trust(FoundFiles(output))  # Its user let Podium write it, and need not read it again.
            except BaseException:
                output.unlink()
                raise


def _nothing_found(found: _Found) -> str:
    if unused := [key.env for key in found.keys if not found.providers]:
        return (
            "No server with a model that chats answers on this machine. To use models that cost money, agree, or add "
            f"--yes; set in the environment: {', '.join(unused)}."
        )
    return (
        "No server with a model that chats answers on this machine, and no provider's key leads to one. Start a "
        "server, as with `ollama serve` and `ollama pull qwen3:4b`, or name one with --url; then run podium init again."
    )


def _document(
    found: _Found, proposal: Proposal | None, output: Path, results: Sequence[CheckResult]
) -> dict[str, Any]:
    return {
        "servers": found.servers,
        "providers": found.providers,
        "keys": [{"provider": key.provider.name, "env": key.env} for key in found.keys],
        "proposal": None if proposal is None else proposal.tables,
        "paid": proposal is not None and proposal.is_paid,
        "notes": [] if proposal is None else proposal.notes,
        "written": None if proposal is None else str(output),
        "checks": results,
    }


def _print_servers(servers: Sequence[FoundServer]) -> None:
    for server in (server for server in servers if server.answers):
        facts = [server.problem, *map(_describe_model, server.models[:_SHOWN])]
        if (unshown := len(server.models) - _SHOWN) > 0:
            facts.append(f"{unshown} more")
        if server.left_out:
            facts.append(f"left out: {', '.join(server.left_out[:_SHOWN])}")
        say(f"{server.kind} at {server.url}: {'; '.join(filter(None, facts))}")
    if silent := ", ".join(f"{server.url} ({server.kind})" for server in servers if not server.answers):
        say(f"Nothing answers at {silent}.")


def _describe_model(model: FoundModel) -> str:
    facts = [] if model.parameters is None else [f"{describe_size(model.parameters)} parameters"]
    if model.context_tokens is not None:
        largest = model.largest_context or 0
        could = f" of {largest:,}" if largest > model.context_tokens else ""
        facts.append(f"context {model.context_tokens:,}{could}{' if loaded now' * model.assumed}")
    return f"{model.id} ({', '.join(facts)})" if facts else model.id


def _print_written(output: Path, proposal: Proposal, found: _Found) -> None:
    workers = ", ".join((*proposal.names, *proposal.tools))
    lines = [f"\nWrote {output}: {proposal.conductor} conducts; the workers are {workers}."]
    if proposal.left_out:
        others = ", ".join(model.id for model in proposal.left_out[:_SHOWN])
        lines.append(f"{counted(len(proposal.left_out), 'weaker model')} left out: {others}.")
    lines += proposal.notes
    if found.keys and not found.providers:
        unused = ", ".join(key.env for key in found.keys)
        lines.append(f"Keys that were found and not used, since their models cost money: {unused}.")
    for line in lines:
        say(line)


def _print_end(output: Path, proposal: Proposal, results: Sequence[CheckResult], port: int) -> None:
    if results:
        say("")
        print_check_results(results)
    team = "" if output == Path(FILE) else f" --team {shlex.quote(str(output))}"
    planner = ""
    if any(result.role == "planner" and not result.answered for result in results):
        planner = f" --planner self-fusion:{proposal.conductor}:3"
        say(
            f"\n{proposal.conductor} has not planned. Let another model conduct (docs/local-models.md), or go on "
            "without a Conductor:"
        )
    else:
        say("\nNext:")
    say(f'    podium ask{team}{planner} "How many days are there from 3 March to 2 May?"')
    say(f"    podium serve{team}{planner}" + ("" if port == USUAL_PORT else f" --port {port}"))
