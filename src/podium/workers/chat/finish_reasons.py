"""Providers' words for why a reply ended, as the five that Podium knows.

They are stop, length, tool_calls, content_filter and error. A word that is none of any provider's stays as it is.
"""

from __future__ import annotations

_WORDS = {
    "stop": "stop end end_turn stop_sequence stop_token eos eos_token end_of_text end_of_turn complete completed "
    "finish finished done normal pause_turn",
    "length": "length max_tokens max_length model_length max_output_tokens max_completion_tokens max_new_tokens "
    "max_tokens_reached token_limit output_limit model_context_window_exceeded context_length_exceeded incomplete",
    "tool_calls": "tool_calls tool_call tool_use function_call function_calls",
    "content_filter": "content_filter content_filtered content_policy content_policy_violation safety image_safety "
    "refusal refused prohibited_content recitation blocklist blocked spii sensitive moderation guardrail_intervened "
    "error_toxic",
    "error": "error network_error server_error malformed_function_call malformed_response unexpected_tool_call "
    "insufficient_system_resource engine_overloaded abort aborted cancelled canceled failed",
}
"""By Podium's word: those of OpenAI, Anthropic, Google, Mistral, Cohere, Bedrock, DeepSeek, Zhipu, TGI and vLLM."""
_MEANING = {word: meaning for meaning, words in _WORDS.items() for word in words.split()}
_NONE = frozenset({"", "null", "none", "unspecified"})
"""What some servers write while a reply goes on."""


def read_finish(written: object) -> str | None:
    """Podium's word for a provider's finish_reason in any case; None: the reply goes on."""
    if not isinstance(written, str):
        return None
    # A gateway may write "content_filter: SAFETY".
    word = written.partition(":")[0].strip().lower().replace("-", "_").replace(" ", "_")
    word = word.removeprefix("finish_reason_")
    return None if word in _NONE else _MEANING.get(word, written)
