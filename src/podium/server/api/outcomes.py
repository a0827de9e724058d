"""POST /api/traces/{id}/outcome: a user says whether an answer was right.

The trace keeps what was said, so lists and exports have it too, and it is deleted with the trace.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import FastAPI, Request
from pydantic import BaseModel, ConfigDict, StringConstraints

from podium.server.api.traces import id_errors_as_api_errors
from podium.server.api_errors import invalid
from podium.server.keys import Caller
from podium.server.requests import Body, RequestCaller, body_schema, read_body
from podium.server.service import Service
from podium.trace import Outcome


def add_routes(app: FastAPI, service: Service) -> None:
    """The route that takes outcomes."""

    @app.post(
        "/api/traces/{id}/outcome",
        openapi_extra=body_schema(OutcomeBody),
    )
    async def outcome(request: Request, caller: RequestCaller, id: str) -> JudgedTrace:
        """Say whether the answer of a trace was right, or take that back. A unique beginning of its id is enough."""
        body = await read_body(OutcomeBody, request)
        with id_errors_as_api_errors(id):
            judged = await service.store.set_outcome(id, body.outcome(caller), caller.visible_owner)
        service.planners.learning.mark_stale()
        service.live.forget(judged.id)
        return JudgedTrace(id=judged.id, outcome=judged.outcome)


class OutcomeBody(Body):
    """The body of POST /api/traces/{id}/outcome. It replaces what was said before."""

    model_config = ConfigDict(extra="forbid")

    right: bool | None = None
    """Whether the answer was right; null: no verdict."""
    note: Annotated[str, StringConstraints(strip_whitespace=True, max_length=4000)] = ""

    def outcome(self, caller: Caller) -> Outcome | None:
        """The outcome that the trace keeps. None if the body has neither a verdict nor a note.

        Raises:
            APIError: 400, the body has no field at all.
        """
        if not self.model_fields_set:
            raise invalid(
                "Give `right`: true, false, or null to take the verdict back; or a `note`.", "right"
            )
        if self.right is None and not self.note:
            return None
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        return Outcome(right=self.right, note=self.note, by=caller.name, at=now)


class JudgedTrace(BaseModel):
    """The reply: the outcome that a trace has now."""

    id: str
    outcome: Outcome | None
