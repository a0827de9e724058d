"""Small tasks of Inspect's, one for each thing that a set of ours has to do with them."""

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ContentImage,
    Model,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.scorer import Score, accuracy, answer, choice, exact, includes, match, model_graded_qa, scorer
from inspect_ai.solver import (
    chain_of_thought,
    generate,
    multiple_choice,
    self_critique,
    solver,
    system_message,
    use_tools,
)
from inspect_ai.tool import think

FRANCE = Sample(input="What is the capital of France?", target="Paris", id="france")
OPTIONS = Sample(input="Which is in France?", choices=["Rome", "Paris", "Bern"], target="B")


def judge() -> Model:
    """A model that says the same always, and how many tokens it took: else Inspect would fetch a tokenizer."""
    output = ModelOutput.from_content("mockllm/model", "GRADE: C")
    output.usage = ModelUsage()
    return get_model("mockllm/model", custom_outputs=lambda *asked: output)


@task
def sums(count: int = 2) -> Task:
    samples = [Sample(input=f"What is {n} + {n}?", target=str(2 * n)) for n in range(1, count + 1)]
    return Task(
        dataset=samples,
        setup=system_message("Be exact."),
        solver=[chain_of_thought("Think.\n{prompt}"), generate()],
        scorer=match(numeric=True),
    )


@task
def chat() -> Task:
    past = [
        ChatMessageSystem(content="Be brief."),
        ChatMessageUser(content="Good day."),
        ChatMessageAssistant(content="To you too."),
        ChatMessageUser(content="What is the capital of France?"),
    ]
    return Task(dataset=[Sample(input=past, target=["Paris", "Paname"])], scorer=exact())


@task
def options(shuffle: bool = False) -> Task:
    return Task(dataset=[OPTIONS], solver=multiple_choice(shuffle=shuffle), scorer=choice())


@task
def bare_options() -> Task:
    return Task(dataset=[OPTIONS], scorer=choice())


@task
def lettered() -> Task:
    return Task(dataset=[FRANCE], scorer=answer("line"))


@scorer(metrics=[accuracy()])
def saying(value):
    async def score(state, target):
        if value == "nothing":
            return None
        if value == "raise":
            raise RuntimeError("no verdict today")
        return Score(value=value, answer="it")

    return score


@task
def verdict(value) -> Task:
    return Task(dataset=[Sample(input="Well?")], scorer=saying(value))


@task
def judged(named: bool) -> Task:
    return Task(dataset=[FRANCE], scorer=model_graded_qa(model=judge() if named else None))


@task
def mixed() -> Task:
    picture = ContentImage(image="data:image/png;base64,iVBORw0KGgo=")
    seen = Sample(input=[ChatMessageUser(content=[picture])], target="a cat")
    return Task(
        dataset=[FRANCE, seen, FRANCE, Sample(input="No target?"), Sample(input=" ", target="x")],
        scorer=includes(),
    )


@solver
def silent():
    async def solve(state, generate):
        return state

    return solve


@solver
def broken():
    async def solve(state, generate):
        raise RuntimeError("out of order")

    return solve


SOLVERS = {
    "tools": [use_tools(think()), generate()],
    "silent": silent(),
    "broken": broken(),
    "twice": [generate(), generate()],
    "critique": [generate(), self_critique(model=judge())],
}


@task
def solved(by: str) -> Task:
    return Task(dataset=[FRANCE], solver=SOLVERS[by], scorer=includes())


@task
def boxed() -> Task:
    return Task(dataset=[FRANCE], sandbox="local", scorer=includes())


@task
def ungraded() -> Task:
    return Task(dataset=[FRANCE])


@task
def empty() -> Task:
    return Task(dataset=[], scorer=includes())
