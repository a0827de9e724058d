// One step in full: the messages that its worker got, its response, cost and time, and errors.
import { Component, html } from "./html.js";
import { count, money, priced, seconds } from "./format.js";
import { fallbackOf, stateOf, took } from "./trace_stats.js";
import { Mark } from "./status_mark.js";
import { Messages, WantedCalls } from "./messages.js";
import { Text, line } from "./text.js";

export function StepDetail({ step, onClose, nested }) {
  const { span } = step;
  const reply = span?.reply;
  return html`<section class="step-detail" aria-label=${`Step ${step.position}`}>
    <header>
      <h3>Step ${step.position}: ${line(step.worker, 60)}</h3>
      <${Mark} state=${stateOf(step)} />
      <button class="quiet" onClick=${onClose} aria-label="Close the step">close</button>
    </header>
    ${span && html`<${Facts} span=${span} step=${step} />`} ${span?.error && html`<p class=${span.status === "skipped" ? "none" : "trouble"}>${line(span.error, 2000)}</p>`}
    <${Part} title="Subtask"><${Text} text=${step.subtask} /><//>
    ${reply?.reasoning && html`<${Part} title="Thoughts"><${Text} text=${reply.reasoning} /><//>`}
    <${Part} title="Response">
      <${Text} text=${span ? reply?.text : step.text} quiet=${span ? "no response" : "not yet"} />
      <${WantedCalls} calls=${reply?.tool_calls ?? []} />
    <//>
    ${span &&
    html`<${Part} title="What the worker saw" hint="exactly as it was sent">
      ${span.messages.length === 0 && html`<p class="none">nothing was sent</p>`}
      <${Messages} messages=${span.messages} />
    <//>`}
    ${reply?.parameters &&
    html`<${Part} title="Parameters and tools" hint="the rest of the request, as it was sent">
      <${Text} text=${JSON.stringify(reply.parameters, null, 2)} />
    <//>`}
    ${span && span.attempts.length > 0 && html`<${Part} title="Attempts"><${Attempts} attempts=${span.attempts} /><//>`}
    ${reply?.nested && html`<${Nested} trace=${reply.nested} nested=${nested} />`}
  </section>`;
}

function Part({ title, hint, children }) {
  return html`<div class="part">
    <h4>${title} ${hint && html`<small>${hint}</small>`}</h4>
    ${children}
  </div>`;
}

function Facts({ span, step }) {
  const reply = span.reply ?? {};
  const usage = reply.usage ?? {};
  const marks = [
    reply.cached && "from the response cache",
    span.attempts.some((attempt) => attempt.hedge) && "hedged",
    fallbackOf(step) && `answered by the fallback ${fallbackOf(step)}`,
    reply.finish === "length" && "cut off at its limit of tokens",
    reply.recorded && `recorded: ${reply.recorded}`,
    usage.estimated && "tokens estimated",
    reply.dropped?.length > 0 && `its endpoint refuses: ${reply.dropped.join(", ")}`,
    reply.folded && "messages folded for its chat template",
  ].filter(Boolean);
  const facts = [
    ["time", seconds(took(span))],
    ["first token", reply.first_token_s == null ? null : seconds(reply.first_token_s)],
    ["cost", priced(span.spent.cost_usd, span.spent.unpriced)],
    ["saved", span.spent.saved_usd ? money(span.spent.saved_usd) : null],
    ["tokens in", count(usage.input_tokens ?? 0) + (usage.cached_tokens ? ` (${count(usage.cached_tokens)} cached)` : "")],
    ["cache writes", usage.cache_write_tokens ? count(usage.cache_write_tokens) : null],
    ["tokens out", count(usage.output_tokens ?? 0) + (usage.reasoning_tokens ? ` (${count(usage.reasoning_tokens)} thought)` : "")],
    ["attempts", count(span.attempts.length)],
    ["reads", reading(step)],
    ["model", reply.model && line(reply.model, 60)],
    ["fingerprint", reply.fingerprint && line(reply.fingerprint, 60)],
    ["context", reply.context_tokens && `${count(reply.context_tokens)} tokens`],
  ].filter(([, value]) => value != null);
  return html`<dl class="facts">${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
    ${marks.length > 0 && html`<p class="tags">${marks.map((mark) => html`<span class="tag">${line(mark, 80)}</span>`)}</p>`}`;
}

function reading({ reads, previous }) {
  const read = [...(reads.length ? [reads.join(", ")] : []), ...(previous > 1 ? [`${previous} earlier responses`] : previous ? ["the answer before"] : [])];
  return read.length ? read.join(" and ") : "no other step";
}

function Attempts({ attempts }) {
  return html`<div class="scrolls"><table>
    <thead><tr><th>worker</th><th class="number">began</th><th class="number">took</th><th>result</th></tr></thead>
    <tbody>
      ${attempts.map(
        (attempt) => html`<tr>
          <td>${line(attempt.worker, 40)}${attempt.hedge && html` <span class="tag">hedge</span>`}</td>
          <td class="number">${seconds(attempt.started_s)}</td>
          <td class="number">${seconds(attempt.ended_s - attempt.started_s)}</td>
          <td>${attempt.error_kind ? html`<b>${attempt.error_kind}</b> ${line(attempt.error, 400)}` : "answered"}</td>
        </tr>`,
      )}
    </tbody>
  </table></div>`;
}

/** What another team did, drawn when it is opened; `nested` draws a trace, and is handed in to break the circle. */
class Nested extends Component {
  constructor(props) {
    super(props);
    this.state = { open: false };
  }

  render({ trace, nested }, { open }) {
    return html`<details class="part nested" onToggle=${(event) => this.setState({ open: event.currentTarget.open })}>
      <summary>What its team did</summary>
      ${open && nested(trace)}
    </details>`;
  }
}
