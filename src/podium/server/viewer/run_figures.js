// The figures of a run: what each of them means, its curve over the iterations, and the alarms.
import { html } from "./html.js";
import { Curves } from "./curves.js";
import { plural } from "./format.js";
import { line } from "./text.js";
import { hueOf } from "./worker_colour.js";

// Key, title, note, definition, and whether it is a share.
const KNOWN = [
  ["reward", "Reward", "mean over rollouts", "What a plan earns, from 0 to 1: for its form and for a right answer, less penalties for cost, calls and time."],
  ["accuracy", "Accuracy", "share of rollouts that were right", "Share of the rollouts whose last answer is right. Held out: the same on questions that are not trained on.", true],
  ["accuracy_readable", "Accuracy of readable plans", "share of rollouts that were right", "The same among the rollouts whose last plan could be read. If accuracy alone grows, the policy learns the form and not the choice.", true],
  ["valid", "Valid plans", "share of plans that could be run", "Share of the plans that can be read and name only workers and steps that exist.", true],
  ["worker_entropy", "Variety of workers", "nats, over steps", "Entropy of the workers' shares of all planned steps: 0 if one worker does everything, ln N if N workers do equally much."],
  ["first_worker_entropy", "Variety of first workers", "nats, over plans", "Entropy of who takes the first step of a plan."],
  ["topology_entropy", "Variety of topologies", "nats, over plans", "Entropy of the plans' topologies, which are which step reads which: 0 if all plans have the same one."],
  ["plan_information", "Plan and kind of question", "nats, less chance", "Mutual information of the kind of a question and its plan (workers and topology), less what chance shows: 0 if the plan does not depend on the question."],
  ["commonest_plan", "Commonest plan", "share of readable plans", "Share of the readable plans that have the commonest workers and topology together; subtasks do not count. Near 100% the policy has collapsed.", true],
  ["zero_variance_groups", "Groups of equal rewards", "share", "Share of the groups in which all rollouts of a question have the same reward: they teach nothing.", true],
  ["penalty", "Penalty", "mean of a readable plan", "Reward that a readable plan loses for cost, calls and time."],
  ["steps", "Steps", "mean of a valid plan", "Steps that the answer needs, as a mean over valid plans."],
  ["steps_std", "Spread of steps", "standard deviation", "How much the number of steps differs from plan to plan: 0 if all have the same."],
  ["calls", "Calls", "mean a question", "Calls of workers for a rollout, over all its rounds, with retries and fallbacks."],
  ["cost_usd", "Cost", "dollars a question", "Dollars for the workers of a rollout, over all its rounds, as if nothing came from the cache."],
  ["accepted", "Acceptances", "share of readable plans", "Share of the readable plans that accept the answer of the round before.", true],
  ["entropy", "Entropy", "nats a token", "How undecided the policy is at each token that it writes."],
  ["kl", "Distance from the start", "nats a rollout", "KL divergence of the policy from the one that training started from; 0 if the loss has no KL term. The TRL engine gives nats a token."],
  ["completion_tokens", "Length of a plan", "tokens", "Tokens that the policy writes for a plan."],
  ["cut_off", "Plans cut off", "share", "Share of the plans that reached the longest length before they ended.", true],
  ["dropped", "Dropped", "in a batch", "Plans that could not be scored because workers or the grader failed. They are not trained on."],
  ["loss", "Loss", "", "What the optimiser minimises. In supervised training: the mean negative log-likelihood of the plans' tokens."],
  ["mean_token_accuracy", "Tokens predicted", "share", "Share of the plans' tokens that are the policy's most likely token at their place.", true],
  ["grad_norm", "Norm of the gradient", "before clipping", "Euclidean norm of all gradients, before it is limited."],
  ["lr", "Learning rate", "", "The optimiser's learning rate."],
];
const OTHER_NAMES = { lr: "learning_rate" }; // of SFT runs
const OF_WORKERS = "Each worker's share of the planned steps. A policy that asks one worker alone shows as one line at 100%.";

/** The name of the rows' number, and each row's number. */
function numbered(rows) {
  const name = ["iteration", "step"].find((key) => key in (rows[0] ?? {})) ?? "row";
  return [name, rows.map((row, i) => row[name] ?? i)];
}

/** A figure of a row; null where it has none. */
function figure(row, key) {
  const value = row[key] ?? row[OTHER_NAMES[key]];
  return typeof value === "number" ? value : null;
}

export function Figures({ rows }) {
  const [xName, x] = numbered(rows);
  const values = (key) => rows.map((row) => figure(row, key));
  const has = (key) => key !== xName && rows.some((row) => figure(row, key) !== null);
  const workers = [...new Set(rows.flatMap((row) => Object.keys(row.workers ?? {})))].sort();
  const held = rows.map((row) => row.evaluation?.accuracy ?? null);
  const curves = KNOWN.filter(([key]) => has(key)).map(([key, title, note, definition, share]) => {
    const series = [{ name: key, values: values(key) }];
    if (key === "accuracy" && held.some((value) => value !== null)) series.push({ name: "held out", values: held });
    return html`<${Curves} key=${key} title=${title} note=${note} definition=${definition} percent=${share} x=${x} xName=${xName} series=${series} />`;
  });
  const shares =
    workers.length > 0 &&
    html`<${Curves}
      key="workers"
      wide
      title="Shares of the workers"
      note="of the planned steps"
      definition=${OF_WORKERS}
      percent
      x=${x}
      xName=${xName}
      series=${workers.map((worker) => ({ name: line(worker, 24), hue: hueOf(worker, workers), values: rows.map((row) => row.workers?.[worker] ?? 0) }))}
    />`;
  return html`<div class="curve-grid">${curves.slice(0, 3)}${shares}${curves.slice(3)}</div>`;
}

/** The curves of two runs, each figure that either has, one over the other. `runs`: {label, rows}. */
export function OverlaidFigures({ runs }) {
  const numbers = runs.map(({ rows }) => numbered(rows));
  const names = [...new Set(numbers.filter((_, i) => runs[i].rows.length).map(([name]) => name))];
  // Only the numbers at which a run has the figure: the axes of two kinds of training differ much.
  const points = (key) => runs.map(({ rows }, i) => new Map(numbers[i][1].flatMap((number, index) => (figure(rows[index], key) === null ? [] : [[number, figure(rows[index], key)]]))));
  const axis = (found) => [...new Set(found.flatMap((of) => [...of.keys()]))].sort((a, b) => a - b);
  const shown = KNOWN.map(([key, ...more]) => [points(key), key, ...more]).filter(([found, key]) => !names.includes(key) && found.some((of) => of.size));
  return html`<div class="curve-grid">
    ${shown.map(
      ([found, key, title, note, definition, share]) => {
        const x = axis(found);
        const series = runs.map(({ label }, i) => ({ name: label, hue: i, values: x.map((number) => found[i].get(number) ?? null) }));
        return html`<${Curves} key=${key} title=${title} note=${note} definition=${definition} percent=${share} x=${x} xName=${names.join(" or ")} series=${series} />`;
      },
    )}
  </div>`;
}

/** What a figure of the rows means; undefined where it is not known. */
export function definitionOf(figure) {
  return KNOWN.find(([key]) => key === figure)?.[3];
}

/** The alarms of the latest row that has any, and how many rows have some. */
export function Alarms({ rows }) {
  const [name, numbers] = numbered(rows);
  const alarmed = rows.flatMap((row, i) => (row.alarms?.length ? [i] : []));
  const last = alarmed.at(-1);
  if (last === undefined) return null;
  return html`<section class="alarms" aria-label="Alarms">
    ${rows[last].alarms.map((sentence) => html`<p class="note">${name} ${numbers[last]}: ${line(sentence, 300)}</p>`)}
    ${alarmed.length > 1 && html`<p class="none">${plural(alarmed.length, name)} of ${rows.length} had alarms.</p>`}
  </section>`;
}
