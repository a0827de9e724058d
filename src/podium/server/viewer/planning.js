// How a plan came about: texts that were no plan, with their errors; the planner's thoughts, its prompt and its text.
import { html } from "./html.js";
import { money } from "./format.js";
import { spent } from "./trace_stats.js";
import { Mark } from "./status_mark.js";
import { Messages } from "./messages.js";
import { Text, line } from "./text.js";

const THOUGHT = 600; // Characters shown of a text before it is folded.

export function Planning({ round }) {
  const { rejected = [], plan_error, plan_reasoning, plan_messages = [], plan_text, steps } = round;
  return html`${rejected.map((one) => html`<${Rejected} one=${one} />`)}
    ${plan_error && html`<div class="trouble"><${Text} text=${plan_error} /></div>`}
    ${plan_error && steps.length > 0 && html`<p class="note">There was no plan to run: ${line(steps[0].worker, 60)} took the whole question.</p>`}
    ${plan_reasoning && html`<div class="part thought"><h4>The planner thought</h4><${Text} text=${plan_reasoning} fold=${THOUGHT} /></div>`}
    ${plan_messages.length > 0 &&
    html`<details class="plan-text"><summary>The planner's prompt</summary><${Messages} messages=${plan_messages} /></details>`}
    ${plan_text && html`<details class="plan-text"><summary>The plan as it was written</summary><${Text} text=${plan_text} /></details>`}`;
}

function Rejected({ one }) {
  const { text, error, reasoning, usage, cost_usd, unpriced } = one;
  const figures = [`${spent(usage)} tokens`, cost_usd ? money(cost_usd) : null, unpriced ? "unpriced" : null];
  return html`<div class="rejected">
    <p><${Mark} state="rejected" /> <span class="figures">${figures.filter(Boolean).join(" · ")}</span></p>
    ${reasoning && html`<div class="thought"><${Text} text=${reasoning} fold=${THOUGHT} /></div>`}
    <${Text} text=${text} fold=${THOUGHT} quiet="an empty text" />
    <div class="trouble"><${Text} text=${error} /></div>
  </div>`;
}
