"""`code`: a tool that runs a Python program in the sandbox and returns what the program printed.

The program is in the subtask, or in a response that the tool sees. It can read those responses from its standard input,
to check them or choose among them. It is never trusted: docs/sandbox.md says what it may do. The tool is no model, so
it writes and repairs no programs.
"""

from __future__ import annotations

import json

from podium.concurrency.event_loops import PerLoop
from podium.errors import ConfigError, GraderError, WorkerError
from podium.sandbox.inside.program import RAISED
from podium.sandbox.inside.run_limits import MIB, WALL_TIME_FACTOR, RunLimits
from podium.sandbox.sandbox import ProgramExit
from podium.sandbox.sandbox_pool import open_sandboxes
from podium.text.answer import final_answer
from podium.text.code_blocks import is_program, last_program
from podium.trace import Reply
from podium.types import Usage
from podium.workers import tool
from podium.workers.base import TOOL, Request, Worker
from podium.workers.spec import CodeSpec

NO_PROGRAM = tool.no_result("neither the subtask nor a response that is shown holds a Python program")
_CHARS_PER_TOKEN = 4
"""The assumed characters per token of the output."""


class CodeWorker(Worker):
    """Runs programs, each in a sandbox of its own."""

    traits = TOOL

    def __init__(self, spec: CodeSpec) -> None:
        self.profile, self.limits, self.fallback = spec.to_profile(), spec.limits, spec.fallback
        self._allow_weak = spec.allow_weak_sandbox
        self._pools = PerLoop(open_sandboxes)
        self._allowance = RunLimits.of(spec.seconds, spec.memory_mb)

    async def answer(self, request: Request) -> Reply:
        """Reply with the output of the program, or why it failed. If there is no program, a sentence says so.

        Raises:
            WorkerError: of kind "unready" if this machine has no strong isolation and a weak one is not allowed;
                "status" if the sandbox failed; "missing" if there is no program and a step failed whose response the
                tool should see.
        """
        programs = map(program_in, tool.searched_texts(request))
        program = next((candidate for candidate in programs if candidate is not None), None)
        try:
            pool = await self._pools.get()
            if program is None:
                # A health check sends no program, but must find out whether a program could run.
                await pool.checked_isolation(allow_weak=self._allow_weak)
                return tool.no_input_reply(request, NO_PROGRAM)
            shown = [
                {"response": text, "answer": final_answer(text)} for text in tool.responses(request.view)
            ]
            async with pool.acquire(allow_weak=self._allow_weak) as (sandbox,):
                ended = await sandbox.run(program, json.dumps(shown), self._allowance, report_error=True)
        except ConfigError as error:
            raise WorkerError(str(error), kind="unready") from None
        except GraderError as error:
            raise WorkerError(str(error), kind="status") from None
        text = self._reply_text(ended)
        max_chars = _CHARS_PER_TOKEN * self.limits.answer_tokens(request.options.max_tokens)
        if len(text) <= max_chars:
            return Reply(text, Usage())
        left = len(text) - max_chars
        return Reply(f"{text[:max_chars]}\n[{left} more characters are cut off]", Usage(), finish="length")

    async def close(self) -> None:
        """End the sandboxes of the running event loop."""
        await self._pools.close()

    def _reply_text(self, ended: ProgramExit) -> str:
        printed = ended.output.decode(errors="replace")
        if ended.reason == "done":
            return (
                _result(printed.strip()) if printed.strip() else tool.no_result("the program printed nothing")
            )
        before, mark, raised = printed.rpartition(RAISED)
        if mark:
            reason, printed = f"the program failed with {raised.strip().rstrip('.')}", before
        else:
            reason = self._reason_text(ended.reason)
        more = f"\nBefore that it printed:\n{printed.strip()}" if printed.strip() else ""
        return f"{tool.no_result(reason)}{more}"

    def _reason_text(self, reason: str) -> str:
        seconds, bytes_ = self._allowance.cpu_s, self._allowance.memory_bytes
        return {
            "time": f"the program had not ended after {seconds:g} s of processor time, or {WALL_TIME_FACTOR} times as "
            "much by the clock",
            "memory": f"the program used more than {bytes_ // MIB} MB of memory",
            "output": f"the program printed more than {self._allowance.output_bytes // MIB} MiB",
            "processes": f"the program started more than {self._allowance.processes} processes and threads",
            "failed": "the program ended with an exit status that is not 0",
        }.get(reason, "the program was killed")


def program_in(text: str) -> str | None:
    """The program in a text: the last block with a program (`last_program`), or the whole text if it is a program. None
    if there is no program."""
    return last_program(text) or (text if is_program(text) else None)


def _result(printed: str) -> str:
    """The output. A single line is marked as the answer, so that votes count it."""
    if "\n" in printed or printed.casefold().startswith("answer:"):
        return printed
    return tool.as_final_answer(printed)
