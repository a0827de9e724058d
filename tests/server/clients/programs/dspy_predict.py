"""DSPy: a signature and ReAct."""

import dspy

from harness import BLUE, UNKNOWN, V1, run


def lm(model="podium"):
    return dspy.LM(f"openai/{model}", api_base=V1, api_key="x", cache=False, num_retries=0)


run(
    {
        "text": lambda: lm()(BLUE)[0],
        "second turn": lambda: lm()(
            messages=[
                {"role": "user", "content": "My name is Ada."},
                {"role": "assistant", "content": "Hello."},
                {"role": "user", "content": "What is my name?"},
            ]
        )[0],
        "unknown model": lambda: lm(UNKNOWN)(BLUE),
    }
)
