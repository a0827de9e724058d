"""OpenTelemetry: finished traces as spans with the GenAI conventions, for whoever collects spans of many services.

Wanted where the environment names a collector; needs the extra `otel`.
"""

from podium.server.telemetry.telemetry import Telemetry, open_telemetry

__all__ = ["Telemetry", "open_telemetry"]
