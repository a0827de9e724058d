"""The `/v1/messages` routes, as Anthropic's clients send requests and read replies."""
