// The mark of a status: a sign, a word and a colour, so that none of the three is needed alone.
import { html } from "./html.js";
export { colour } from "./worker_colour.js";

const MARKS = {
  ok: ["✓", "answered", "good"],
  done: ["✓", "done", "good"],
  fallback: ["↪", "done by its fallback", "warn"],
  rejected: ["✕", "rejected plan", "warn"],
  degraded: ["!", "degraded", "warn"],
  failed: ["✕", "failed", "bad"],
  refused: ["⊘", "refused", "warn"],
  cancelled: ["■", "cancelled", "warn"],
  skipped: ["–", "skipped", "calm"],
  planned: ["○", "planned", "calm"],
  waiting: ["○", "waiting", "calm"],
  running: ["◐", "running", "live"],
  closed: ["✓", "in service", "good"],
  open: ["✕", "cooldown", "bad"],
  "half-open": ["◐", "being tried", "warn"],
  idle: ["○", "not called yet", "calm"],
  unready: ["!", "not ready", "bad"],
};

export function sign(state) {
  return (MARKS[state] ?? ["·"])[0];
}

export function word(state) {
  return (MARKS[state] ?? [, state])[1];
}

export function tone(state) {
  return (MARKS[state] ?? [, , "calm"])[2];
}

export function Mark({ state }) {
  return html`<span class=${`mark ${tone(state)}`}><span aria-hidden="true">${sign(state)}</span> ${word(state)}</span>`;
}
