"""Responses that are wrong and look right: a table that grows with every one that a grader rewarded, or could.

A row is the gold answer and a response. The second table has their harmless neighbours, which must stay right.
"""

from __future__ import annotations

WORDS = (
    # the sign
    ("5", "negative 5"),
    ("5", "The answer is negative 5."),
    ("5", "negative $5$"),
    ("5", "\\text{negative } 5"),
    ("5", "minus 5"),
    ("5", "the opposite of 5"),
    ("5", "the negation of 5"),
    ("5", "a negative slope of 5"),
    ("5", "5 below"),
    ("5", "5 degrees below zero"),
    ("x", "negative x"),
    # denied
    ("5", "not 5"),
    ("5", "It is not 5"),
    ("5", "The answer is not equal to 5"),
    ("5", "\\boxed{\\text{not }5}"),
    ("5", "**not** 5"),
    ("5", "never 5"),
    ("5", "it isn't 5"),
    ("5", "it cannot be 5"),
    ("5", "neither 5"),
    ("5", "anything but 5"),
    ("5", "other than 5"),
    ("5", "every number except 5"),
    ("5", "It is 6 instead of 5"),
    ("5", "6 rather than 5"),
    ("5", "5 is wrong"),
    ("5", "5 is not correct"),
    ("x", "not x"),
    ("\\text{Evelyn}", "It is not **Evelyn**"),
    # a part, or several times as much
    ("10", "half of 10"),
    ("10", "half of the 10"),
    ("5", "a third of 5"),
    ("9", "two thirds of 9"),
    ("5", "one half of 5"),
    ("20", "5 percent of 20"),
    ("20", "5% of 20"),
    ("10", "3 out of 10"),
    ("10", "twice 10"),
    ("10", "double 10"),
    ("5", "thrice 5"),
    ("5", "quadruple 5"),
    ("5", "5 tenths"),
    ("5", "5 halves"),
    ("5", "5 hundredths"),
    ("5", "5 and a half"),
    ("5", "5 and a quarter"),
    ("5", "zero point 5"),
    ("5", "0 point 5"),
    ("5", "5 lakh"),
    # powers and functions
    ("5", "5 squared"),
    ("5", "$5$ squared"),
    ("5", "5 cubed"),
    ("5", "5 to the third"),
    ("5", "2 to the power of 5"),
    ("9", "the square root of 9"),
    ("8", "cube root of 8"),
    ("5", "square of 5"),
    ("5", "the logarithm of 5"),
    ("5", "the reciprocal of 5"),
    ("5", "5 factorial"),
    # two numbers that make one
    ("6", "5 over 6"),
    ("6", "5 divided by 6"),
    ("6", "5 to 6"),
    ("6", "5 by 6"),
    ("5", "3 times 5"),
    ("5", "five times 5"),
    ("3", "x plus 3"),
    ("5", "6 minus 5"),
    ("5", "one over 5"),
    # bounds
    ("5", "more than 5"),
    ("5", "less than 5"),
    ("5", "greater than 5"),
    ("5", "over 5"),
    ("5", "under 5"),
    ("5", "5 or more"),
)
"""For `math`: a word changes the value. Without the word each would be right."""

READ = (
    ("-5", "negative 5"),
    ("-5", "minus 5"),
    ("-x", "negative x"),
    ("25", "5 squared"),
    ("x^2", "$x$ squared"),
    ("125", "5 cubed"),
    ("2.5", "2 and a half"),
    ("1", "6 minus 5"),
)
"""For `math`: the word is read."""

HARMLESS = (
    "5 apples",
    "5 square meters",
    "5 meters squared",
    "5 cubic feet",
    "approximately 5",
    "about 5 miles per hour",
    "at least 5",
    "a minimum of 5",
    "a total of 5",
    "an average of 5 per day",
    "half of 10 is 5",
    "half of 10 = 5",
    "The square root of 25 is 5",
    "The negative of -5 is 5",
    "It is twice the size, so 5",
    "It is not 4 but 5",
    "Not counting him, there are 5",
    "the number of students not in the club = 5",
    "5 students not in the club",
    "5 times as many",
    "he has 5 more apples than Tom",
    "She is 5 years older",
    "the third number is 5",
    "the non-negative integer 5",
    "from 3 to 5",
    "5 weeks over the summer",
    "the distance over which she ran is 5 miles",
    "The difference between the two is 5",
    "\\boxed{5\\text{ square units}}",
    "5 half-hours",
    "a profit of $5",
)
"""For `math`: each says 5."""

NUMBERS = (
    ("5", "5 squared"),
    ("5", "5 cubed"),
    ("5", "5 factorial"),
    ("5", "5 is wrong"),
    ("5", "5 is not correct"),
    ("5", "5 degrees below zero"),
    ("5", "5 tenths"),
    ("5", "5 hundredths"),
    ("5", "5 bn"),
)
"""For `numeric`: words behind the number that are no unit."""

SIGNS = (
    ("a = b", "a ≠ b"),
    ("x ∈ A", "x ∉ A"),
    ("A ⊂ B", "A ⊄ B"),
    ("a < b", "a ≮ b"),
    ("a ∣ b", "a ∤ b"),
    ("∃", "∄"),
    ("→", "↛"),
    ("=", "=\u0338"),
)
"""For `normalised` and `set`: the stroke says the opposite."""

LETTERS = (
    "Answer: B, maybe C",
    "Answer: B, or maybe C",
    "Answer: B; alternatively, C",
    "Answer: B, also C",
    "Answer: B, possibly also D",
    "Answer: B, and then C",
    "Answer: B, if not C",
    "Answer: B; otherwise C",
    "Answer: B, option C",
    'Answer: "B" "C"',
    "Answer: B (Lima) or C (Rome)",
    "Answer: B - Lima, C - Rome",
    "Answer: B. Lima, C. Rome",
    "Answer: B: Lima; C: Rome",
    "Answer: B\nor C",
    "Answer: B\n(alternatively C)",
    "Answer: B\n\nC\nD",
    "The answer is B as well as C",
    "The answer is B, unless it is C",
    "\\boxed{C}, \\boxed{B}",
    "\\boxed{C} or \\boxed{B}",
    "\\boxed{C}\\boxed{B}",
    "<answer>C</answer><answer>B</answer>",
    "<answer>C</answer> or <answer>B</answer>",
)
"""For `choice`: none decides for B."""

ONE_LETTER = (
    "Answer: B, not C",
    "Answer: B\n\nC is too small.",
    "Answer: B\nThen A is too small.",
    "Answer: A\nWait.\nAnswer: B",
    "\\boxed{B}. Again: \\boxed{B}",
    "Answer: B. Franklin D. Roosevelt",
    "Answer: B. Points A and C",
)
"""For `choice`, whose option B is "Points A and C": each decides for B."""
