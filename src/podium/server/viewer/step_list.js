// The steps of a round, to be read from top to bottom: who, told what, saw what, said what, at what cost.
import { html } from "./html.js";
import { count, money, priced, seconds } from "./format.js";
import { called, fallbackOf, took } from "./trace_stats.js";
import { Mark } from "./status_mark.js";
import { Markdown } from "./markdown.js";
import { WantedCalls } from "./messages.js";
import { Text, line } from "./text.js";
import { colour } from "./worker_colour.js";

const THOUGHT = 300; // Characters shown of a thought before it is folded.

export function StepList({ steps, names, plain, chosen, onChoose, label }) {
  return html`<ol class="step-list" aria-label=${label}>
    ${steps.map(
      (step) =>
        html`<${Item}
          key=${step.position}
          step=${step}
          steps=${steps}
          names=${names}
          plain=${plain}
          chosen=${chosen === step.position}
          onChoose=${onChoose}
        />`,
    )}
  </ol>`;
}

function Item({ step, steps, names, plain, chosen, onChoose }) {
  const { position, worker, subtask, span } = step;
  const fallback = fallbackOf(step);
  return html`<li class="step-item">
    <header>
      <span class="dot" style=${{ background: colour(fallback ?? worker, names) }} aria-hidden="true"></span>
      <b>${position} ${line(worker, 60)}</b>
      ${fallback ? html`<span class="fallback">↪ its fallback ${line(fallback, 60)} answered</span>` : html`<${Mark} state=${step.status} />`}
      <button class="quiet" aria-pressed=${chosen ? "true" : "false"} onClick=${() => onChoose(chosen ? null : position)}>details</button>
    </header>
    <dl>
      <div><dt>told</dt><dd><${Text} text=${subtask} /></dd></div>
      <div><dt>saw</dt><dd>${saw(step, steps)}</dd></div>
      ${span?.reply?.reasoning && html`<div><dt>thought</dt><dd class="thought"><${Text} text=${span.reply.reasoning} fold=${THOUGHT} /></dd></div>`}
      <div><dt>said</dt><dd class="said">${said(step, plain)}</dd></div>
      ${span && called(span) && html`<div><dt>cost</dt><dd>${cost(span)}</dd></div>`}
    </dl>
  </li>`;
}

function saw({ reads, previous }, steps) {
  const read = reads.map((at) => `step ${at} (${line(fallbackOf(steps[at] ?? {}) ?? steps[at]?.worker, 40)})`);
  const parts = ["the question", ...read, ...earlier(previous)];
  return parts.length === 1 ? "the question alone" : parts.join(", ");
}

function earlier(shown) {
  return shown > 1 ? [`${shown} responses of earlier rounds`] : shown ? ["the answer of the round before"] : [];
}

function said({ status, span }, plain) {
  if (!span) return html`<span class="none">${status === "running" ? "…" : "not yet"}</span>`;
  return html`${span.reply && html`<${Markdown} text=${span.reply.text} plain=${plain} quiet="an empty response" />`}
    <${WantedCalls} calls=${span.reply?.tool_calls ?? []} />
    ${span.error && html`<p class=${status === "skipped" ? "none" : "trouble"}>${line(span.error, 2000)}</p>`}
    ${!span.reply && !span.error && html`<span class="none">nothing: no step needs it</span>`}`;
}

function cost(span) {
  const { attempts, reply } = span;
  const usage = reply?.usage;
  return [
    reply?.cached ? `${money(span.spent.cost_usd)}, out of the cache` : priced(span.spent.cost_usd, span.spent.unpriced),
    usage && `${count(usage.input_tokens)} tokens in, ${count(usage.output_tokens)} out${usage.estimated ? ", estimated" : ""}`,
    seconds(took(span)),
    attempts.length > 1 && `${attempts.length} attempts`,
  ]
    .filter(Boolean)
    .join(" · ");
}
