// The state that a question's page draws: made from a finished trace, or event by event while it runs.
//
// {id, question, planner, status, error, answer, seconds, started, names, rounds, trace}; names are the workers' by
// number; status "running" until it has
// ended. A round: {number, plan, fallback, steps, response}; plan and fallback as in a trace, null until there is a plan.
// A step: {position, worker, subtask, reads, previous, status, span, since}; status "waiting" or "running"
// until its span has one.

/** The state of a finished trace. */
export function fromTrace(trace) {
  const names = trace.pool.map((profile) => profile.name);
  return {
    id: trace.id,
    question: trace.question.text,
    planner: trace.planner,
    status: trace.status,
    error: trace.error,
    answer: trace.answer,
    seconds: trace.seconds,
    started: trace.started_at,
    names,
    rounds: trace.rounds.map((round, number) => ofRound(round, number, names)),
    trace,
  };
}

/** The state before the first event. */
export function initialView(id, question = null, planner = null, names = []) {
  return {
    id,
    question,
    planner,
    status: "running",
    error: null,
    answer: null,
    seconds: null,
    started: new Date().toISOString(),
    names,
    rounds: [],
    trace: null,
  };
}

/** The workers' names; where the pool is not known yet, those that have been named so far. */
export function workersOf({ names, rounds }) {
  return names.length ? names : [...new Set(rounds.flatMap(({ steps }) => steps.map(({ worker }) => worker)))];
}

/** The state after an event, as a new object wherever something changed. */
export function applyEvent(view, type, data) {
  const { names = [] } = view;
  switch (type) {
    case "started":
      return { ...view, ...known(data) };
    case "plan":
      return withRound(view, data.round, (round) => ({
        ...round,
        plan: data.plan,
        fallback: data.fallback,
        steps: planned(data, data.round, data.workers ?? names),
      }));
    case "step_started":
      return withStep(view, data.round, data.position, (step) => ({
        ...step,
        worker: data.worker,
        subtask: data.subtask,
        status: "running",
        since: performance.now(),
      }));
    case "text": {
      const text = textSoFar(view, data) + data.text;
      const { round, position, attempt } = data;
      return { ...withStep(view, round, position, (step) => ({ ...step, text, attempt })), answer: text };
    }
    case "step_ended":
      return withStep(view, data.round, data.span.position, (step) => ended(step, data.span));
    case "round_ended":
      return {
        ...withRound(view, data.round, (round) => ({
          ...round,
          response: data.response,
          steps: round.steps.map((step) => (step.span ? step : { ...step, status: "skipped" })),
        })),
        answer: data.response ?? view.answer,
      };
    case "ended":
      return fromTrace(data.trace);
    default:
      return view;
  }
}

function ofRound(round, number, names) {
  const steps = planned(round, number, names);
  for (const span of round.spans) {
    const step = steps[span.position] ?? { position: span.position, previous: 0 };
    steps[span.position] = ended({ ...step, reads: span.reads }, span);
  }
  const { spans, ...planning } = round;
  return { ...planning, number, steps };
}

function planned({ plan, fallback }, number, names) {
  // How many responses of earlier rounds its steps with "previous" or "all" see.
  const shown = number > 0 ? plan.visible_responses?.length || 1 : 0;
  return (plan.decision.steps ?? fallback?.steps ?? []).map(({ worker, subtask, access }, position) => ({
    position,
    worker: names[worker] ?? `worker ${worker}`,
    subtask,
    reads: access.all ? [...Array(position).keys()] : access.steps,
    previous: access.all || access.previous ? shown : 0,
    status: "waiting",
    span: null,
  }));
}

function ended(step, span) {
  return { ...step, worker: span.worker, subtask: span.subtask, status: span.status, span };
}

function withRound(view, number, change) {
  const rounds = [...view.rounds];
  while (rounds.length <= number) rounds.push({ number: rounds.length, plan: null, steps: [] });
  rounds[number] = change(rounds[number]);
  return { ...view, rounds };
}

function withStep(view, number, position, change) {
  return withRound(view, number, (round) => {
    const steps = [...round.steps];
    steps[position] = change(steps[position] ?? { position, reads: [], status: "waiting", span: null });
    return { ...round, steps };
  });
}

/** The text of this attempt so far. Another step or attempt starts a new text. */
function textSoFar(view, { round, position, attempt }) {
  const step = view.rounds[round]?.steps[position];
  return step?.attempt === attempt ? (step.text ?? "") : "";
}

function known({ question, planner, started_at, workers }) {
  return {
    ...(workers != null && { names: workers }),
    ...(question != null && { question }),
    ...(planner != null && { planner }),
    ...(started_at != null && { started: started_at }),
  };
}
