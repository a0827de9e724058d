// One form for what is drawn of a question: made from a finished trace, or event by event while it runs.
//
// {id, question, planner, status, error, answer, seconds, started, names, rounds, trace}; names are the workers' by
// number; status "running" until it has
// ended. A round: {number, plan_text, plan_error, plan_seconds, plan_usage, plan_cost_usd, plan_unpriced, accepted, planned, steps,
// response}. A step: {position, worker, subtask, reads, previous, status, span, since}; status "waiting" or "running"
// until its span has one.

/** What is drawn of a finished trace. */
export function ofTrace(trace) {
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

/** What is drawn before anything has happened. */
export function nothingYet(id, question = null, planner = null, names = []) {
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

/** `shown` after an event; a new value wherever something changed. */
export function after(shown, type, data) {
  const { names = [] } = shown;
  switch (type) {
    case "started":
      return { ...shown, ...known(data) };
    case "plan":
      return withRound(shown, data.round, (round) => ({
        ...round,
        planned: true,
        plan_text: data.text,
        plan_error: data.error,
        plan_seconds: data.seconds,
        plan_usage: data.usage,
        plan_cost_usd: data.cost_usd,
        plan_unpriced: data.unpriced,
        accepted: data.accepted,
        steps: planned(data.workflow, data.workers ?? names, data.round > 0),
      }));
    case "step_started":
      return withStep(shown, data.round, data.position, (step) => ({
        ...step,
        worker: data.worker,
        subtask: data.subtask,
        status: "running",
        since: performance.now(),
      }));
    case "text": {
      const text = textSoFar(shown, data) + data.text;
      const { round, position, attempt } = data;
      return { ...withStep(shown, round, position, (step) => ({ ...step, text, attempt })), answer: text };
    }
    case "step_ended":
      return withStep(shown, data.round, data.span.position, (step) => ended(step, data.span));
    case "round_ended":
      return {
        ...withRound(shown, data.round, (round) => ({
          ...round,
          accepted: data.accepted,
          response: data.response,
          steps: round.steps.map((step) => (step.span ? step : { ...step, status: "skipped" })),
        })),
        answer: data.response ?? shown.answer,
      };
    case "ended":
      return ofTrace(data.trace);
    default:
      return shown;
  }
}

function ofRound(round, number, names) {
  const steps = planned(round.workflow, names, number > 0);
  for (const span of round.spans) {
    const step = steps[span.position] ?? { position: span.position, previous: false };
    steps[span.position] = ended({ ...step, reads: span.reads }, span);
  }
  const { plan_text, plan_error, plan_seconds, plan_usage, plan_cost_usd, plan_unpriced, accepted, response } = round;
  const planning = { plan_text, plan_error, plan_seconds, plan_usage, plan_cost_usd, plan_unpriced };
  return { number, planned: true, ...planning, accepted, response, steps };
}

function planned(workflow, names, later) {
  return (workflow?.steps ?? []).map(({ worker, subtask, access }, position) => ({
    position,
    worker: names[worker] ?? `worker ${worker}`,
    subtask,
    reads: access.all ? [...Array(position).keys()] : access.steps,
    previous: later && (access.all || access.previous),
    status: "waiting",
    span: null,
  }));
}

function ended(step, span) {
  return { ...step, worker: span.worker, subtask: span.subtask, status: span.status, span };
}

function withRound(shown, number, change) {
  const rounds = [...shown.rounds];
  while (rounds.length <= number) rounds.push({ number: rounds.length, steps: [], planned: false });
  rounds[number] = change(rounds[number]);
  return { ...shown, rounds };
}

function withStep(shown, number, position, change) {
  return withRound(shown, number, (round) => {
    const steps = [...round.steps];
    steps[position] = change(steps[position] ?? { position, reads: [], status: "waiting", span: null });
    return { ...round, steps };
  });
}

/** Pieces of another step are another answer, and a step that is tried again writes it anew. */
function textSoFar(shown, { round, position, attempt }) {
  const step = shown.rounds[round]?.steps[position];
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
