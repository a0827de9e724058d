"""What stands between the socket and the routes: sizes, times, origins, headers.

Plain ASGI around the application, in the order of `install`. What a guard refuses, it answers in OpenAI's form, as
everything else. Knows nothing of questions.
"""

from podium.server.guards.order import install

__all__ = ["install"]
