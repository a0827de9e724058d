// Accuracy over cost: each method of a comparison with its interval, and the Pareto frontier.
import { html } from "./html.js";
import { percent } from "./format.js";
import { colour } from "./status_mark.js";
import { Term } from "./term.js";
import { line } from "./text.js";

const MEANING = "Each method at its dollars and its accuracy on the same questions. The bars are 95% intervals over questions. A method on the line is more accurate than every cheaper one.";
const SIZE = { width: 720, height: 360, left: 52, right: 20, top: 14, bottom: 42 };
const FREE = 24; // Pixels from the axis to methods that cost nothing, which have no logarithm.

export function Frontier({ rows }) {
  const shown = rows.filter((row) => row.kind !== "oracle" && row.cost_usd != null && row.accuracy);
  if (shown.length < 2 || !shown.some((row) => row.cost_usd > 0)) return html`<p class="none">Too few methods that cost anything.</p>`;
  const kinds = [...new Set(rows.map((row) => row.kind))];
  const scale = scales(shown);
  const best = undominated(shown);
  return html`<figure class="frontier">
    <figcaption><b><${Term} definition=${MEANING}>Accuracy against cost<//></b> <small>bars: 95% intervals · line: nothing cheaper is better</small></figcaption>
    <div class="scrolls"><svg viewBox=${`0 0 ${SIZE.width} ${SIZE.height}`} role="img" aria-label="Accuracy against dollars for 1,000 questions">
      ${scale.across.map(
        (value) => html`<g>
          <line class="grid" x1=${SIZE.left} x2=${SIZE.width - SIZE.right} y1=${scale.y(value)} y2=${scale.y(value)} />
          <text x=${SIZE.left - 8} y=${scale.y(value) + 4} text-anchor="end">${percent(value, 0)}</text>
        </g>`,
      )}
      ${scale.below.map(
        (usd) => html`<text x=${scale.x(usd)} y=${SIZE.height - SIZE.bottom + 18} text-anchor="middle">$${Number((1000 * usd).toPrecision(3))}</text>`,
      )}
      <text x=${(SIZE.left + SIZE.width - SIZE.right) / 2} y=${SIZE.height - 4} text-anchor="middle">dollars for 1,000 questions</text>
      <polyline class="best" points=${best.map((row) => `${scale.x(row.cost_usd)},${scale.y(row.accuracy.mean)}`).join(" ")} />
      ${shown.map((row) => {
        const x = scale.x(row.cost_usd);
        const fill = { stroke: colour(row.kind, kinds), fill: colour(row.kind, kinds) };
        const named = best.includes(row) || row.kind === "conductor";
        const right = x > SIZE.width * 0.6;
        return html`<g class="point">
          <title>${`${row.label}: ${percent(row.accuracy.mean)} (${percent(row.accuracy.low)} to ${percent(row.accuracy.high)})`}</title>
          <line style=${fill} x1=${x} x2=${x} y1=${scale.y(row.accuracy.low)} y2=${scale.y(row.accuracy.high)} />
          <circle style=${fill} cx=${x} cy=${scale.y(row.accuracy.mean)} r=${row.kind === "conductor" ? 6.5 : 4} />
          ${named &&
          html`<text class="name" x=${right ? x - 10 : x + 10} y=${scale.y(row.accuracy.mean) - 8} text-anchor=${right ? "end" : "start"}>
            ${line(row.label, 34)}
          </text>`}
        </g>`;
      })}
    </svg></div>
  </figure>`;
}

/** Rows that are more accurate than every cheaper one, the cheapest first. */
function undominated(rows) {
  const found = [];
  for (const row of [...rows].sort((a, b) => a.cost_usd - b.cost_usd || b.accuracy.mean - a.accuracy.mean)) {
    if (!found.length || row.accuracy.mean > found.at(-1).accuracy.mean) found.push(row);
  }
  return found;
}

function scales(rows) {
  const logs = rows.filter((row) => row.cost_usd > 0).map((row) => Math.log10(row.cost_usd));
  const free = logs.length < rows.length;
  const start = SIZE.left + (free ? 2 * FREE : 0);
  const [left, right] = [Math.min(...logs) - 0.08, Math.max(...logs) + 0.08];
  const low = Math.max(0, Math.floor(10 * Math.min(...rows.map((row) => row.accuracy.low))) / 10);
  const high = Math.min(1, Math.ceil(10 * Math.max(...rows.map((row) => row.accuracy.high))) / 10);
  const x = (usd) => (usd > 0 ? start + ((Math.log10(usd) - left) / (right - left)) * (SIZE.width - start - SIZE.right) : SIZE.left + FREE);
  const y = (value) => SIZE.height - SIZE.bottom - ((value - low) / (high - low || 1)) * (SIZE.height - SIZE.top - SIZE.bottom);
  const across = [];
  for (let value = low; value <= high + 1e-9; value += high - low > 0.5 ? 0.2 : 0.1) across.push(value);
  const below = free ? [0] : [];
  const steps = right - left > 2.5 ? [1] : [1, 2, 5];
  for (let power = Math.floor(left); power <= right; power++) {
    for (const step of steps) {
      const log = power + Math.log10(step);
      if (log >= left && log <= right) below.push(10 ** log);
    }
  }
  return { x, y, across, below };
}
