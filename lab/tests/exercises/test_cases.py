"""Plans over the made-up world: valid, coherent, and not chosen to be good."""

import re
from random import Random

import pytest

from podium.conductor.checkpoint import TrainingScope
from podium.errors import ConfigError
from podium.team.team_file import open_pool
from podium.types import ANSWER_WHOLE_QUESTION
from podium.workflow import Acceptance, PlanError, PlanRules, Workflow, parse
from podium_lab.exercises.abilities import ABILITIES
from podium_lab.exercises.cases import (
    SCOPE,
    SKILLS,
    draw_plan,
    draw_question,
    known_team,
    orchestra_team,
    reading_text,
    unseen_question,
)
from podium_lab.exercises.plans import JOIN, draw_steps, draw_world_workflow
from podium_lab.exercises.teams import Shares, read_thought
from podium_lab.warmstart.examples import draw_example
from podium_lab.world import RELATIONS, made_up_words, world
from podium_lab.world.tasks import WorldTasks, split_of
from scripted_team import write_team

FACTS = world()
FIELD_OF = {thing: field for field, things in FACTS.things.items() for thing in things}
TEAM = orchestra_team(ABILITIES)


def followed(subtask, results):
    """What a subtask asks for, read a second time: "Find the A of the B of X." is B, then A, of X."""
    *nouns, subject = re.fullmatch(r"Find (.+)\.", subtask)[1].split(" of ")
    while " of ".join([nouns[-1], subject]).removeprefix("the ") in FACTS.things["work"]:
        subject = f"{nouns.pop()} of {subject}"  # "Song of Salt" is a name.
    step = re.fullmatch("the result of step (.)", subject) or re.fullmatch("step (.)", subject)
    if step:
        nouns = [noun for noun in nouns if noun != "the result"]
        thing = results[int(step[1])]
    else:
        thing = subject
    thing = next(
        t for things in FACTS.things.values() for t in things if t in (thing, thing.removeprefix("the "))
    )
    for noun in reversed(nouns):
        field = FIELD_OF[thing]
        (relation,) = (
            r for r in RELATIONS.values() if r.field == field and r.noun == noun.removeprefix("the ")
        )
        thing = FACTS.value(relation.name, thing)
    return thing


def test_following_every_subtask_of_a_drawn_plan_yields_the_answer():
    """Whoever follows every subtask rightly, with the results of earlier ones, has the answer."""
    rng, followed_plans = Random("follow"), 0
    while followed_plans < 150:
        _, parts = draw_question(rng)
        drawn = draw_steps(rng, parts.problem, rng.randint(1, 7))
        texts = [part.subtask for part in drawn]
        if not texts or not parts.problem.is_typed:
            continue  # They cannot be so few, or there is no answer.
        kinds = "".join("f" if "Find" in text else "j" if text == JOIN else "c" for text in texts)
        assert re.fullmatch("f+c*" if parts.problem.join == "none" else "f+jc*", kinds)
        results = []
        for text in texts[: kinds.count("f")]:
            results.append(followed(text, results))
        for part in drawn:
            assert all(
                int(step) in part.reads for step in re.findall(r"the result of step (\d)", part.subtask)
            )
        ends = [path.values(FACTS)[-1] for path in parts.problem.paths]
        assert results[-1] == ends[-1]
        assert all(end in results for end in ends)
        if "j" in kinds:
            assert [results[place] for place in drawn[kinds.index("j")].reads] == ends
        followed_plans += 1


def test_plans_of_examples_are_valid_in_both_rounds():
    shares = Shares(plan=1.0, team=0.0, reading=0.0, lookup=0.0, relevant=0.5)
    later = accepted = 0
    for index in range(300):
        example = draw_example("valid", index, known=TEAM, synthetic_teams=0.5, shares=shares)
        models = re.search(r"Models:\n((?:\d+: .+\n)+)", example.prompt)[1].count("\n")
        steps = int(re.search(r"^Steps: (\d)$", example.prompt, re.MULTILINE)[1])
        again = "Earlier plan" in example.prompt
        plan = parse(example.pieces[0][0], PlanRules(workers=models, max_steps=steps, later_round=again))
        assert not isinstance(plan, PlanError), example
        later += again
        accepted += isinstance(plan, Acceptance)
    assert 40 < later < 110
    assert 8 < accepted < later


def test_a_plan_with_too_few_steps_may_stop_if_another_round_follows():
    rng, stopped, gone_on = Random("stops"), 0, 0
    shares = Shares(fitting=1.0, relevant=0.5, whole=0.0)
    while gone_on < 20:
        case = draw_plan(rng, TEAM, shares)
        if not case.request.earlier_rounds:
            relations = case.parts.problem.paths[0].relations
            if case.request.rounds_left == 1 and isinstance(case.decision, Workflow):
                assert case.request.max_steps >= len(case.decision.steps)
            stopped += case.request.rounds_left > 1 and len(relations) == case.request.max_steps
            continue
        (earlier_round,) = case.request.earlier_rounds
        if not isinstance(case.decision, Workflow) or "Find" not in case.decision.steps[0].subtask:
            continue
        value = earlier_round.response.rpartition("Answer: ")[2]
        if case.parts.problem.paths[0].thing == value:
            assert value in case.decision.steps[0].subtask
            gone_on += 1
    assert stopped > 20


def test_rounds_of_a_long_chain_work_through_its_relations_in_order():
    rng, begun, gone_on, accepted = Random("unfinished"), 0, 0, 0
    shares = Shares(unfinished=1.0, fitting=0.5, relevant=0.5, whole=0.5)
    for _ in range(100):
        case = draw_plan(rng, TEAM, shares)
        needs, steps = case.thought.split("; steps ")
        if isinstance(case.decision, Acceptance):
            assert steps == "0"
            assert case.request.earlier_rounds
            accepted += 1
            continue
        (path,) = case.parts.problem.paths
        parts, begin = read_thought(needs), case.request.max_steps * len(case.request.earlier_rounds)
        left = len(parts) - begin
        assert len(parts) > case.request.max_steps
        assert len(case.decision.steps) == len(path.relations) == min(left, case.request.max_steps)
        assert case.request.rounds_left * case.request.max_steps >= left
        numbers = [entry.partition(" ")[0] for entry in steps.split(", ")]
        assert numbers == [f"{begin + place}" for place in range(len(path.relations))]
        noun = RELATIONS[path.relations[0]].noun
        assert f"{begin} {noun} " in needs
        subtask = case.decision.steps[0].subtask
        assert subtask.startswith(f"{begin}. Find the {noun} of ")
        assert path.thing in subtask
        for earlier_round in case.request.earlier_rounds[-1:]:
            assert earlier_round.response.endswith(f"\nAnswer: {path.thing}")
            gone_on += 1
        begun += not begin
    assert min(begun, gone_on, accepted) > 10


def test_a_thought_names_the_parts_then_each_steps_find_and_worker():
    rng, gone_by_parts = Random("thought"), 0
    for _ in range(200):
        _, parts = draw_question(rng)
        plan, thought = draw_world_workflow(rng, parts, TEAM, shares=Shares(fitting=1.0, relevant=0.5))
        needs, steps = thought.split("; steps ")
        named = read_thought(needs)
        assert [skill for skill, _ in named] == list(parts.skills)
        assert all(int(number) in TEAM.fit(skill) for skill, number in named)
        entries = [re.fullmatch(r"(\d) (.+) ([a-z]+)(\d+)", entry).groups() for entry in steps.split(", ")]
        assert [int(number) for *_, number in entries] == [step.worker for step in plan.steps]
        for (place, found, _, _), step in zip(entries, plan.steps, strict=True):
            assert step.subtask.startswith(f"{place}. ")
            if "Find" in step.subtask:
                words = iter(step.subtask.split(" "))
                assert all(word in words for word in found.split(" "))  # In this order.
        if all("Find" in step.subtask or JOIN in step.subtask for step in plan.steps) and len(plan.steps) < 5:
            assert [skill for _, _, skill, _ in entries] == list(parts.skills)
            gone_by_parts += 1
    assert gone_by_parts > 50


def test_about_a_third_of_lessons_chain_relations_of_mismatched_types():
    rng = Random("loose")
    drawn = [draw_question(rng) for _ in range(400)]
    loose = [(question, parts) for question, parts in drawn if not parts.problem.is_typed]
    assert 0.22 < len(loose) / len(drawn) < 0.38
    for question, parts in loose:
        assert parts.problem.hint is None
        assert all(RELATIONS[path.relations[0]].field == FIELD_OF[path.thing] for path in parts.problem.paths)
        assert question.text


def test_lessons_have_wordings_that_no_task_has():
    rng = Random("wordings")
    texts = [draw_question(rng)[0].text for _ in range(400)]
    told = [text for text in texts if re.search(r"\ba certain \w+", text)]
    assert 20 < len(told) < 120
    assert not any(
        re.search(r"\ba certain \w+", WorldTasks("train")[index].question.text) for index in range(400)
    )


def test_plans_in_which_every_worker_fits_are_not_rare_however_long():
    """With a share of one half they are 1 in 1 + n for n steps; drawn step by step they would be 1 in 2 ** n."""
    rng, fits = Random("relevant"), []
    while len(fits) < 400:
        _, parts = draw_question(rng)
        if len(parts.skills) == 4:
            shares = Shares(fitting=1.0, relevant=0.5, whole=0.0)
            plan, _ = draw_world_workflow(rng, parts, TEAM, shares=shares)
            workers = [step.worker for step in plan.steps]
            fits.append(all(w in TEAM.fit(skill) for w, skill in zip(workers, parts.skills, strict=True)))
    assert 0.15 < sum(fits) / len(fits) < 0.35  # 1 in 5, and some by chance.


def test_settings_give_the_share_of_plans_with_the_whole_question():
    rng = Random("whole")
    asked = []
    for _ in range(300):
        _, parts = draw_question(rng)
        plan, _ = draw_world_workflow(rng, parts, TEAM, shares=Shares(fitting=1.0, whole=0.45))
        asked.append(all(step.subtask.endswith(ANSWER_WHOLE_QUESTION) for step in plan.steps))
    assert 0.37 < sum(asked) / len(asked) < 0.6


def test_each_level_of_cost_sensitivity_takes_a_step_if_settings_say_so():
    rng = Random("saving")
    for _ in range(200):
        _, parts = draw_question(rng)
        level, needed = rng.randrange(4), len(parts.skills)
        for saving, fewer in ((1.0, level), (0.0, 0)):
            shares = Shares(fitting=1.0, saving=saving)
            plan, thought = draw_world_workflow(rng, parts, TEAM, level=level, shares=shares)
            assert len(plan.steps) == max(1, min(needed - fewer, 5))
            assert f"; Thrift {level} last {len(plan.steps) - 1}; steps 0 " in thought


def test_plan_length_follows_the_cost_sensitivity_in_its_prompt():
    rng, levels = Random("prompted"), set()
    for _ in range(200):
        case = draw_plan(rng, TEAM, Shares(fitting=1.0, saving=1.0))
        if isinstance(case.decision, Workflow):
            assert f"; Thrift {case.prompt.cost_sensitivity} last " in case.thought
        stopped = case.request.rounds_left > 1 and len(case.parts.skills) == case.request.max_steps
        if isinstance(case.decision, Workflow) and not stopped:
            level = case.prompt.cost_sensitivity
            expected = max(1, min(len(case.parts.skills) - level, case.request.max_steps))
            assert len(case.decision.steps) == expected
            levels.add(level)
    assert levels == {0, 1, 2, 3}


def test_examples_are_of_the_train_split_and_the_check_of_validation():
    rng = Random("splits")
    assert {split_of(draw_question(rng)[1].problem) for _ in range(100)} == {"train"}
    assert {split_of(unseen_question(0, index)[1].problem) for index in range(100)} == {"validation"}


def test_a_reading_names_the_skill_of_every_part():
    for index in range(50):
        _, parts = unseen_question(1, index)
        lines = reading_text(parts).split("\n")
        assert [line.rpartition(" = ")[2] for line in lines] == list(parts.skills)
        assert set(parts.skills) <= set(SKILLS)


def test_profiles_say_what_workers_are_taught():
    said = {ability.name: ability.profile for ability in ABILITIES}
    assert said["edda"] == "Knows dishes and persons, and half of the ships."
    assert said["hanno"] == "Knows a third of everything. Large."
    assert said["ilka"] == "Knows half of the persons and places. Small."
    assert TEAM.fit("firms") == (0, 5)
    assert TEAM.fit("ships") == (3,)
    assert orchestra_team(ABILITIES[4:5]).fit("ships") == (0,)


def test_pool_with_workers_outside_the_orchestra_is_refused(tmp_path):
    pool = write_team(tmp_path / "two.toml")
    with pytest.raises(ConfigError, match="'egon', which is no worker of the orchestra"):
        known_team(str(pool))


def test_the_examples_know_the_shipped_pool_with_its_vote():
    team = known_team("orchestra")
    assert [profile.name for profile in team.profiles] == [*(a.name for a in ABILITIES), "vote"]
    assert team.claims[-1] == {}
    assert team.fit("joins") == (9,)


def test_a_policy_of_these_examples_may_conduct_live_workers():
    assert SCOPE.misfit(open_pool("orchestra")) is None
    assert TrainingScope(simulated=True).misfit(open_pool("orchestra"))


def test_the_tokenizer_spells_names_that_no_language_has():
    assert {"halonmouth", "toreth", "rado"} <= set(made_up_words())
    assert not {"founder", "mill", "song", "salt", "ada", "result"} & set(made_up_words())
    names = {word.lower() for things in FACTS.things.values() for name in things for word in name.split()}
    assert len(names & set(made_up_words())) > 300
