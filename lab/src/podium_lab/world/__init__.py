"""A world of made-up facts: what language models that were taught different parts of it can answer together.

`schema` has the fields and relations with their words, `encyclopedia` draws the facts, `problem` is a question without
its words, and `wording` writes it. The task set `world` (`podium_lab.world.tasks`) draws the problems.
"""

from podium_lab.world.encyclopedia import World, made_up_words, world
from podium_lab.world.problem import Join, Path, Problem
from podium_lab.world.schema import FIELDS, RELATIONS, Relation, relations_of
from podium_lab.world.wording import fact_sentence, phrase, word_question

__all__ = [
    "FIELDS",
    "RELATIONS",
    "Join",
    "Path",
    "Problem",
    "Relation",
    "World",
    "fact_sentence",
    "made_up_words",
    "phrase",
    "relations_of",
    "word_question",
    "world",
]
