"""The client for every endpoint that speaks OpenAI's /chat/completions, and for /embeddings.

    client           one attempt at one chat          endpoint       address, headers, proxies
    request_body     what is sent                     failures       every failure as a `WorkerError`
    response_reader  the response, whole or streamed  reply_builder  answer, thoughts and tokens of a reply
    tool_calls       its tool calls                   provider_state what the provider wants back
    embeddings       vectors of texts

One call is one attempt: retries, rates and concurrency are up to `podium.calls`. `client` loads the HTTP client.
"""
