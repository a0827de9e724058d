// One question, running or ended: the question, its figures, the answer, the rounds. Draws a view state.
import { html } from "./html.js";
import { calls, cost, saved, tokens, unpriced } from "./trace_stats.js";
import { count, money, moment, priced, seconds } from "./format.js";
import { Answer } from "./answer.js";
import { Explanation } from "./explanation.js";
import { Mark } from "./status_mark.js";
import { Rounds } from "./rounds.js";
import { fromTrace, workersOf } from "./view_state.js";
import { Text, line } from "./text.js";

export function TraceView({ view, elapsed, actions, steady, explained }) {
  const running = view.status === "running";
  const workers = workersOf(view);
  return html`<article class=${steady ? "trace steady" : "trace"} aria-busy=${running ? "true" : "false"}>
    <${Figures} view=${view} elapsed=${elapsed} />
    ${actions}
    <section class="answer-box" aria-label="Question and answer">
      <h3>Question</h3>
      <${Text} text=${view.question} fold=${1200} quiet="…" />
      <${Past} trace=${view.trace} />
      <${Answer} view=${view} steady=${steady} />
      ${(view.trace?.rounds.at(-1)?.spans.at(-1)?.reply?.tool_calls ?? []).length > 0 &&
      html`<p class="note">The last worker wants tools to be called; see its step.</p>`}
    </section>
    <${Rounds}
      view=${view}
      names=${workers}
      nested=${(trace) => html`<${TraceView} view=${fromTrace(trace)} />`}
    />
    ${explained && view.trace && html`<${Explanation} id=${view.id} names=${workers} />`}
  </article>`;
}

function Figures({ view, elapsed }) {
  const { rounds, trace } = view;
  const spared = saved(rounds);
  const facts = [
    ["time", seconds(view.seconds ?? elapsed)],
    ["cost", priced(cost(rounds), unpriced(rounds))],
    ["calls", count(calls(rounds))],
    ["tokens", count(tokens(rounds))],
    ["planner", line(view.planner ?? "–", 40)],
    ["asked", moment(view.started)],
  ];
  if (spared) facts.push(["saved by the cache", money(spared)]);
  if (trace?.owner) facts.push(["key", line(trace.owner, 40)]);
  return html`<div class="headline">
    <${Mark} state=${view.status} />
    <dl class="facts">
      ${facts.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
    </dl>
  </div>`;
}

function Past({ trace }) {
  const history = trace?.question.history ?? [];
  const images = trace?.question.images ?? [];
  return html`${images.map((image) => html`<p class="none">with an image: ${line(image, 80)}</p>`)}
  ${history.length > 0 &&
  html`<details class="plan-text">
    <summary>What was said before (${history.length})</summary>
    ${history.map(
      (message) => html`<div class=${`message ${message.role}`}><p class="role">${message.role}</p><${Text} text=${message.content} /></div>`,
    )}
  </details>`}`;
}
