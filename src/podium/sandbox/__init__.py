"""Runs untrusted programs, isolated from the machine and from each other.

`sandbox_pool` keeps interpreters ready, and `sandbox` is the host's side of one of them. `inside` is what that
interpreter loads; both sides frame their messages with `inside.frames`. This module imports nothing, so that
interpreters start fast.
"""
