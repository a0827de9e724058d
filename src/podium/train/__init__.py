"""Training the Conductor by GRPO in plain torch, on one device, for small policies.

Nothing is imported here: `settings`, `display` and `process` load no torch, the rest do.
"""
