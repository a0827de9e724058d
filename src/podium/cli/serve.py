"""`podium serve`: one endpoint in front of the team, with its viewer. The server is an extra: `run_server` runs it."""

from __future__ import annotations

from importlib.util import find_spec

from podium.cli.found_team import find_team
from podium.cli.team_options import Override, ServeOptions
from podium.errors import UsageError

_PACKAGES = ("fastapi", "prometheus_client", "uvicorn")


def serve(*overrides: Override, team: ServeOptions = ServeOptions()) -> int:
    """Answer questions over HTTP until SIGTERM or Ctrl+C.

    The table [serve] of the team file has what else a server has: timeout, cors, runs, viewer and more.
    """
    if not all(map(find_spec, _PACKAGES)):
        raise UsageError(
            "Serving needs a web framework; install it with: pip install 'podium-conductor[serve]'."
        )
    from podium.cli.run_server import serve_team  # noqa: PLC0415 - loads the web framework

    serve_team(find_team(team, overrides))
    return 0
