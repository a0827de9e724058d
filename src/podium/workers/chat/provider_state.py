"""Collects what a provider wants back unread with a message: signatures, encrypted or plain reasoning.

Providers refuse a tool's result if the call comes back without it (Gemini's thought signatures, DeepSeek's
reasoning_content), or reason anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_REASONING = ("reasoning_content", "reasoning", "thinking", "reasoning_text")
"""The fields in which vLLM and DeepSeek, OpenRouter, and others put the reasoning of a model."""
_PIECES = ("reasoning_details", "thinking_blocks")
"""Reasoning in pieces with signatures, as OpenRouter and LiteLLM write it."""
_OTHER = ("extra_content", "reasoning_opaque", "reasoning_signature", "encrypted_content")
_JOINED = frozenset({"text", "summary", "thinking", "data", "signature", "encrypted_content"})
"""Fields of a piece that a stream continues."""
STATE_KEYS = frozenset({*_REASONING, *_PIECES, *_OTHER})
"""The keys of a message that Podium sends back."""


def read_state(text: str, keys: frozenset[str]) -> dict[str, Any]:
    """The fields of these names in a state: a client may have sent others back."""
    try:
        fields = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return {key: value for key, value in fields.items() if key in keys} if isinstance(fields, dict) else {}


class StateCollector:
    """Collects the state of one message, from a whole reply or from the chunks of a stream."""

    def __init__(self) -> None:
        self.length = 0
        """Characters collected, reasoning that is shown left out."""
        self._texts: dict[str, list[str]] = {}
        self._values: dict[str, Any] = {}
        self._pieces: dict[str, list[dict[str, Any]]] = {}

    def add(self, message: Mapping[str, Any]) -> str:
        """Add a message or delta; returns the reasoning in it that may be shown."""
        if STATE_KEYS.isdisjoint(message):
            return ""
        for name in _OTHER:
            value = message.get(name)
            if isinstance(value, str) and value:
                self._texts.setdefault(name, []).append(value)
                self.length += len(value)
            elif isinstance(value, dict) and (kept := _without_flags(value)):
                self._values[name] = self._values.get(name, {}) | kept
                self.length += len(json.dumps(kept))
        shown: list[str] = []
        for name in _PIECES:
            pieces = message.get(name)
            for piece in pieces if isinstance(pieces, list) else ():
                if isinstance(piece, dict):
                    self._add_piece(name, piece)
                    readable = (piece.get(key) for key in ("text", "summary", "thinking"))
                    shown.extend(text for text in readable if isinstance(text, str))
        for name in _REASONING:
            if isinstance(text := message.get(name), str) and text:
                self._texts.setdefault(name, []).append(text)
                return text
        return "".join(shown)

    def read(self, *, calls_tools: bool) -> dict[str, Any]:
        """The state by the provider's keys.

        Args:
            calls_tools: whether the message calls tools. Only then plain reasoning belongs to it: DeepSeek refuses it
                elsewhere.
        """
        texts = {
            name: "".join(parts)
            for name, parts in self._texts.items()
            if calls_tools or name not in _REASONING
        }
        pieces = {
            name: [
                {
                    key: "".join(value) if key in _JOINED and isinstance(value, list) else value
                    for key, value in piece.items()
                }
                for piece in kept
            ]
            for name, kept in self._pieces.items()
        }
        return {**texts, **self._values, **pieces}

    def _add_piece(self, name: str, piece: Mapping[str, Any]) -> None:
        kept = self._pieces.setdefault(name, [])
        self.length += len(json.dumps(piece))
        texts = {key: [value] for key, value in piece.items() if key in _JOINED and isinstance(value, str)}
        if not kept or any(kept[-1].get(key) != piece.get(key) for key in ("type", "index", "id")):
            kept.append({**piece, **texts})
            return
        for key, value in piece.items():
            if key in texts and isinstance(kept[-1].get(key), list):
                kept[-1][key].append(value)
            elif value is not None:
                kept[-1][key] = texts.get(key, value)


def _without_flags(extra: Mapping[str, Any]) -> dict[str, Any]:
    """`extra_content` without Gemini's flag that a piece of text is a thought: it would make the whole message one."""
    google = extra.get("google")
    if not isinstance(google, dict) or "thought" not in google:
        return dict(extra)
    rest = {key: value for key, value in google.items() if key != "thought"}
    others = {key: value for key, value in extra.items() if key != "google"}
    return others | {"google": rest} if rest else others
