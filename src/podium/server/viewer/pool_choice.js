// The pool, loaded once for a page, and the controls to choose planners and workers.
import { html } from "./html.js";
import { requestJson } from "./api.js";
import { line } from "./text.js";

export async function readPool(signal) {
  return requestJson("/api/pool", { signal });
}

/** A list of planners in groups: those that plan, one worker, and votes of one worker. */
export function PlannerChoice({ pool, value, onChange, id }) {
  const groups = [
    ["Planners", pool.planners.filter((name) => !name.includes(":"))],
    ["One worker", pool.planners.filter((name) => name.startsWith("single:"))],
    ["One worker, by vote", pool.planners.filter((name) => name.startsWith("self-consistency:"))],
  ];
  return html`<select id=${id} value=${value} onChange=${(event) => onChange(event.currentTarget.value)}>
    <option value="">as configured: ${line(pool.configured, 40)}</option>
    ${groups
      .filter(([, names]) => names.length)
      .map(
        ([label, names]) =>
          html`<optgroup label=${label}>${names.map((name) => html`<option value=${name}>${line(name, 60)}</option>`)}</optgroup>`,
      )}
  </select>`;
}

/** For each worker: use it if the planner chooses it, use only the marked ones, or never use it. */
export function WorkerChoice({ pool, allow, deny, onChange }) {
  const change = (name, list) =>
    onChange({
      allow: list === "allow" ? [...allow, name] : allow.filter((other) => other !== name),
      deny: list === "deny" ? [...deny, name] : deny.filter((other) => other !== name),
    });
  return html`<div class="worker-choice">
    ${pool.workers.map(
      ({ name }) => html`<label key=${name}>
        <span>${line(name, 40)}</span>
        <select
          aria-label=${`Use of ${name}`}
          value=${allow.includes(name) ? "allow" : deny.includes(name) ? "deny" : ""}
          onChange=${(event) => change(name, event.currentTarget.value)}
        >
          <option value="">if chosen</option>
          <option value="allow">only these</option>
          <option value="deny">never</option>
        </select>
      </label>`,
    )}
  </div>`;
}
