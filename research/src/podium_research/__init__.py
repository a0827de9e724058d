"""What studies of Podium need, and its users do not: planners of other papers, their searches, published runs.

Podium reaches it by entry points alone. It uses Podium as any other package may.
"""
