"""The warm start: supervised training of a small policy, from which GRPO starts.

It teaches a policy of a few million parameters what an instructed model knows before any reinforcement: to write valid
plans, to copy spans, to name the parts of a question, and to match skills with profiles. Its plans are random within
what `Shares` asks for.
"""
