"""POST /v1/chat/completions, as OpenAI's clients send and read it."""

from podium.server.chat.route import routes

__all__ = ["routes"]
