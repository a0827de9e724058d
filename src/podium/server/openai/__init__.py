"""The `/v1` routes, as OpenAI's clients send requests and read replies: chat completions, responses, models."""
