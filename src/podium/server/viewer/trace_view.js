// One question, running or ended: the question, the figures, the answer, the rounds. Draws what `shown` has.
import { html } from "./html.js";
import { calls, cost, saved, tokens } from "./facts.js";
import { count, money, moment, seconds } from "./figures.js";
import { Mark } from "./marks.js";
import { Rounds } from "./rounds.js";
import { ofTrace } from "./shown.js";
import { Text, line } from "./text.js";

export function TraceView({ shown, elapsed, actions, steady }) {
  const running = shown.status === "running";
  const workers = shown.names.length ? shown.names : namesOf(shown);
  return html`<article class=${steady ? "trace steady" : "trace"} aria-busy=${running ? "true" : "false"}>
    <${Figures} shown=${shown} elapsed=${elapsed} />
    ${actions}
    <section class="answer-box" aria-label="Question and answer">
      <h3>Question</h3>
      <${Text} text=${shown.question} fold=${1200} quiet="…" />
      <${Past} trace=${shown.trace} />
      <h3>Answer</h3>
      <div class="answer" tabindex=${steady ? 0 : null} role="group" aria-label="Answer" aria-live="polite" aria-atomic="false">
        ${shown.answer == null
          ? html`<p class="none">${running ? (shown.rounds[0]?.planned ? "The team is at work …" : "Planning …") : "There is no answer."}</p>`
          : html`<${Text} text=${shown.answer} quiet="an empty answer" />`}
        ${shown.error && html`<p class="trouble">${line(shown.error, 2000)}</p>`}
      </div>
      ${(shown.trace?.rounds.at(-1)?.spans.at(-1)?.tool_calls ?? []).length > 0 &&
      html`<p class="note">The last worker wants tools to be called; see its step.</p>`}
    </section>
    <${Rounds}
      shown=${shown}
      names=${workers}
      nested=${(trace) => html`<${TraceView} shown=${ofTrace(trace)} />`}
    />
  </article>`;
}

function Figures({ shown, elapsed }) {
  const { rounds, trace } = shown;
  const spared = saved(rounds);
  const facts = [
    ["time", seconds(shown.seconds ?? elapsed)],
    ["cost", money(cost(rounds))],
    ["calls", count(calls(rounds))],
    ["tokens", count(tokens(rounds))],
    ["planner", line(shown.planner ?? "–", 40)],
    ["asked", moment(shown.started)],
  ];
  if (spared) facts.push(["saved by the cache", money(spared)]);
  if (trace?.owner) facts.push(["key", line(trace.owner, 40)]);
  return html`<div class="headline">
    <${Mark} state=${shown.status} />
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

/** Workers that have been named so far, where the pool is not known. */
function namesOf(shown) {
  return [...new Set(shown.rounds.flatMap((round) => round.steps.map((step) => step.worker)))];
}
