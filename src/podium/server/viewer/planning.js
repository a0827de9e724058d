// How a plan came about: texts that were no plan, with their errors; the planner's thoughts, its prompt and its text.
import { html } from "./html.js";
import { money } from "./format.js";
import { tokensOf } from "./trace_stats.js";
import { Mark } from "./status_mark.js";
import { Messages } from "./messages.js";
import { Text, line } from "./text.js";

const THOUGHT = 600; // Characters shown of a text before it is folded.

export function Planning({ plan, steps, abandoned = [] }) {
  const { rejected, reasoning, messages = [], text } = plan;
  const error = errorOf(plan);
  return html`${rejected.map((one) => html`<${Rejected} plan=${one} />`)}
    ${error && html`<div class="trouble"><${Text} text=${error} /></div>`}
    ${error && steps.length > 0 && html`<p class="note">There was no plan to run: ${line(steps[0].worker, 60)} took the whole question.</p>`}
    ${abandoned.map(({ worker, subtask, spent, error }) => html`<p class="note">${line(worker, 60)}, ${money(spent.cost_usd)}: ${line(subtask, 120)} ${error}</p>`)}
    ${reasoning && html`<div class="part thought"><h4>The planner thought</h4><${Text} text=${reasoning} fold=${THOUGHT} /></div>`}
    ${messages.length > 0 &&
    html`<details class="plan-text"><summary>The planner's prompt</summary><${Messages} messages=${messages} /></details>`}
    ${text && html`<details class="plan-text"><summary>The plan as it was written</summary><${Text} text=${text} /></details>`}`;
}

/** The whole error of a plan that cannot be run, with the line at fault and a caret; null: it can be run. */
function errorOf({ decision }) {
  if (!decision.kind) return null;
  const { message, text, column } = decision;
  return column === null ? message : `${message}\n    ${text}\n    ${" ".repeat(column)}^`;
}

function Rejected({ plan }) {
  const { text, reasoning, spent } = plan;
  const figures = [`${tokensOf(spent.usage)} tokens`, spent.cost_usd ? money(spent.cost_usd) : null, spent.unpriced ? "unpriced" : null];
  return html`<div class="rejected">
    <p><${Mark} state="rejected" /> <span class="figures">${figures.filter(Boolean).join(" · ")}</span></p>
    ${reasoning && html`<div class="thought"><${Text} text=${reasoning} fold=${THOUGHT} /></div>`}
    <${Text} text=${text} fold=${THOUGHT} quiet="an empty text" />
    <div class="trouble"><${Text} text=${errorOf(plan)} /></div>
  </div>`;
}
