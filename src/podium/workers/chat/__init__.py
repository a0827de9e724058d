"""Asking any endpoint that speaks OpenAI's /chat/completions: where it is, what is sent, what may come back.

    endpoint  where, and which headers     client  one attempt       seed     randomness as a number
    events    server-sent events           draft   what was said     usage    what is billed
    complaint what was complained of       failure the sentences     waiting  Retry-After

One call is one attempt: retries, rates and concurrency are the executor's. `client` loads the HTTP client.
"""
