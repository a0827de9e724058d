// Values derived from a trace: totals, the direct edges of a plan, the critical path.

export function cost(rounds) {
  return spent(rounds, ({ cost_usd }) => cost_usd);
}

/** Whether the price of a call is not known, so that the cost leaves it out. */
export function unpriced(rounds) {
  return parts(rounds).some(({ spent }) => spent.unpriced);
}

export function saved(rounds) {
  return spent(rounds, ({ saved_usd }) => saved_usd);
}

export function calls(rounds) {
  return sum(rounds, (round) => spans(round).filter(called).length);
}

export function tokens(rounds) {
  return spent(rounds, ({ usage }) => tokensOf(usage));
}

export function tokensOf({ input_tokens, output_tokens }) {
  return input_tokens + output_tokens;
}

/** The sum of a figure of all that plans and steps have taken. */
function spent(rounds, figure) {
  return sum(parts(rounds), (one) => figure(one.spent));
}

/** All plans and steps. */
function parts(rounds) {
  return [...rounds.map((round) => round.plan).filter(Boolean), ...rounds.flatMap(spans)];
}

export function called(span) {
  return span.attempts.length > 0 || span.reply?.cached === true;
}

/** The worker that answered in place of the chosen one; null where none did. */
export function fallbackOf({ worker, span }) {
  return span?.answered_by && span.answered_by !== worker ? span.answered_by : null;
}

/** The state that a step is drawn in. */
export function stateOf(step) {
  return step.status === "done" && fallbackOf(step) ? "fallback" : step.status;
}

/** Seconds that a step took: as its reply claims, else measured. */
export function took(span) {
  return span.reply?.latency_s ?? measured(span);
}

function measured(span) {
  return span.ended_s - span.started_s;
}

function spans(round) {
  return round.steps.map((step) => step.span).filter(Boolean);
}

/** For each step the earlier steps that it reads directly, not only through another step. */
export function direct(steps) {
  const behind = new Map(); // position -> Set of all that it needs
  const found = new Map();
  for (const { position, reads } of steps) {
    const needs = new Set();
    for (const read of reads) {
      needs.add(read);
      for (const further of behind.get(read) ?? []) needs.add(further);
    }
    behind.set(position, needs);
    found.set(position, reads.filter((read) => !reads.some((other) => other !== read && behind.get(other)?.has(read))));
  }
  return found;
}

/** {path: Set of positions along the slowest chain, seconds, begins: Map of position to seconds, claimed} of a round's steps. */
export function timing(steps) {
  const begins = new Map();
  const ends = new Map();
  const before = new Map();
  const claimed = steps.some(({ span }) => span && took(span) > measured(span)); // Only a replayed reply claims more than the clock measured.
  // A step may have waited for one that the plan names after it.
  for (const { position, span, reads } of [...steps].sort((a, b) => (a.span?.started_s ?? 0) - (b.span?.started_s ?? 0))) {
    if (!span || !called(span)) continue;
    const last = latest(ends, [...reads, ...(span.waited ?? [])].filter((read) => ends.has(read)));
    before.set(position, last);
    begins.set(position, last === null ? 0 : ends.get(last));
    ends.set(position, begins.get(position) + took(span));
  }
  const path = new Set();
  let at = latest(ends, [...ends.keys()]);
  const seconds = at === null ? 0 : ends.get(at);
  for (; at != null; at = before.get(at)) path.add(at);
  return { path, seconds, begins, claimed };
}

function latest(ends, positions) {
  return positions.reduce((a, b) => (a !== null && ends.get(a) >= ends.get(b) ? a : b), null);
}

function sum(items, of) {
  return items.reduce((total, item) => total + (of(item) || 0), 0);
}
