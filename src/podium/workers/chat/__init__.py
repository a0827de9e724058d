"""A call of a chat API: `chat_worker` makes it of these parts, and `podium.workers.openai` and `litellm` send it.

endpoint         address, headers, proxies        failures       every failure as a `WorkerError`
request_body     what is sent                     adaptation     what an endpoint was found not to take
response_reader  the response, whole or streamed  reply_builder  answer, thoughts and tokens of a reply
tool_calls       its tool calls                   provider_state what the provider wants back
"""
