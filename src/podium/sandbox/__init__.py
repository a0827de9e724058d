"""Runs untrusted programs, isolated from the machine and from each other.

`sandbox_pool` keeps interpreters ready, `sandbox` is the host's side of one of them, and `inside` is what it loads.
This module imports nothing, so that interpreters start fast.
"""
