// What a run trains on: the task set and split of its questions, the pool, the model that it starts from.
import { html } from "./html.js";
import { count } from "./format.js";
import { Fact } from "./term.js";
import { line } from "./text.js";

const MEANING = {
  set: "The task set, file or recording whose questions these are.",
  split: "The part of the task set. Splits share no question: training takes train, choices are made on validation, and test is for comparisons.",
  pool: "The workers that the plans are for.",
  start: "The checkpoint or model that training starts from.",
  stage: "Supervised training (sft) or reinforcement learning (grpo).",
  examples: "Where the plans of supervised training come from.",
};

/** Set and split of some questions, as `GET /api/runs` tells them. */
export function setAndSplit(questions) {
  return [questions?.set ? line(questions.set, 120) : "not recorded", questions?.split ?? "not recorded"];
}

export function RunFacts({ run: { configuration, questions }, rows }) {
  const { task_limit: most, pool, start, stage, sft } = configuration ?? {};
  const [set, split] = setAndSplit(questions.training);
  const trained = rows.length > 0 || questions.training;
  const facts = [
    ["task set", trained && `${set}${most ? `, at most ${count(most)} questions` : ""}`, MEANING.set],
    ["split", trained && split, MEANING.split],
    ["pool", pool, MEANING.pool],
    ["start", start, MEANING.start],
    ["stage", stage, MEANING.stage],
    ["examples", stage === "sft" && sft?.examples, MEANING.examples],
  ].filter(([, value]) => typeof value === "string");
  if (!facts.length) return null;
  return html`<dl class="facts">
    ${facts.map(([name, value, definition]) => html`<${Fact} key=${name} name=${name} definition=${definition}>${line(value, 120)}<//>`)}
  </dl>`;
}
