// When each step ran; a row for each step from the start, so that nothing moves when it ends. Bars of the critical path are marked, by colour and by a sign.
import { html } from "./html.js";
import { seconds } from "./format.js";
import { called, fallbackOf, took } from "./trace_stats.js";
import { word } from "./status_mark.js";
import { line } from "./text.js";
import { colour } from "./worker_colour.js";

export function Waterfall({ steps, timing, names, chosen, onChoose }) {
  if (!steps.length) return null;
  const ran = steps.filter(({ span }) => span && called(span));
  // Recorded answers claim their seconds, so the clock says nothing of when they would have run.
  const begun = ({ position, span }) => (timing.claimed ? timing.begins.get(position) : span.started_s);
  const start = Math.min(...ran.map(begun));
  const end = ran.length ? Math.max(...ran.map((step) => begun(step) + took(step.span))) : start;
  const share = (s) => `${((100 * s) / (end - start || 1)).toFixed(2)}%`;
  return html`<div class="waterfall">
    <p class="axis">
      <span>0</span>
      <span>${ran.length ? `critical path ${seconds(timing.seconds)}${timing.claimed ? ", as the answers claim" : ""}` : ""}</span>
      <span>${ran.length ? seconds(end - start) : ""}</span>
    </p>
    ${steps.map((step) => {
      const critical = timing.path.has(step.position);
      const bar = ran.includes(step);
      const fallback = fallbackOf(step);
      return html`<button
        key=${step.position}
        class=${`bar-row ${critical ? "critical" : ""}`}
        aria-pressed=${chosen === step.position}
        onClick=${() => onChoose(chosen === step.position ? null : step.position)}
      >
        <span class="bar-name">${step.position} ${line(step.worker, 40)}${fallback ? ` ↪ ${line(fallback, 40)}` : ""}</span>
        <span class="bar-track">
          ${bar &&
          html`<span
            class="bar"
            style=${{
              left: share(begun(step) - start),
              width: share(took(step.span)),
              background: colour(fallback ?? step.worker, names),
            }}
          ></span>`}
        </span>
        <span class="bar-figure">
          ${critical && html`<abbr title="on the critical path">◆</abbr> `}${bar ? seconds(took(step.span)) : word(step.status)}
        </span>
      </button>`;
    })}
  </div>`;
}
