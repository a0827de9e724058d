"""The warm start: what an instructed model knows before any reinforcement, for a policy of a few million parameters.

It learns to write valid plans at random, to copy spans, to say what a question is made of, and which profile goes
with which need. It never sees a plan that is good for its question.
"""
