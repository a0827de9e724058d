"""POST /v1/responses and GET /v1/responses/{id}, as OpenAI's clients send and read them."""

from podium.server.responses.route import routes

__all__ = ["routes"]
