// A plan as a graph: a box for each step, an edge from each step that it reads. Boxes are buttons.
import { Component, createRef, html } from "./html.js";
import { priced, seconds } from "./format.js";
import { fallbackOf, stateOf, took } from "./trace_stats.js";
import { BOX, curve, planLayout } from "./graph_layout.js";
import { sign, tone, word } from "./status_mark.js";
import { line } from "./text.js";
import { colour } from "./worker_colour.js";

const SMALLEST = 0.75; // Smaller words are hard to read.

export class PlanGraph extends Component {
  constructor(props) {
    super(props);
    this.frame = createRef();
    this.state = { room: 0 };
  }

  componentDidMount() {
    this.watch = new ResizeObserver(([entry]) => {
      const room = Math.round(entry.contentRect.width);
      if (room !== this.state.room) this.setState({ room });
    });
    this.watch.observe(this.frame.current);
  }

  componentWillUnmount() {
    this.watch.disconnect();
  }

  /** Along where there is room, else down. It depends on the shape alone, and is kept while steps light up. */
  layout(steps, room) {
    const shape = `${room}/${steps.length}/${steps.map(({ reads }) => reads.join(",")).join(";")}`;
    if (shape !== this.shape) {
      this.shape = shape;
      this.kept = planLayout(steps, false);
      if (room && this.kept.width * SMALLEST > room) {
        const down = planLayout(steps, true);
        if (down.width < this.kept.width) this.kept = down;
      }
    }
    return this.kept;
  }

  render({ steps, names, path, chosen, onChoose, label }, { room }) {
    const layout = this.layout(steps, room);
    const scale = room ? Math.min(1, Math.max(SMALLEST, room / layout.width)) : 1;
    return html`<div class="graph" ref=${this.frame}>
      ${room > 0 &&
      steps.length > 0 &&
      html`<svg
        width=${layout.width * scale}
        height=${layout.height * scale}
        viewBox=${`0 0 ${layout.width} ${layout.height}`}
        role="group"
        aria-label=${label}
      >
        <defs>
          <marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerUnits="userSpaceOnUse" markerWidth="9" markerHeight="9" orient="auto">
            <path d="M0,0.5 L7.5,4 L0,7.5 z" />
          </marker>
        </defs>
        ${layout.lines.map(
          ({ from, to, points }) =>
            html`<path
              key=${`${from}-${to}`}
              class=${`line ${path?.has(from) && path.has(to) ? "critical" : ""} ${
                chosen === from || chosen === to ? "near" : ""
              }`}
              d=${curve(points)}
              marker-end="url(#tip)"
            />`,
        )}
        ${steps.map(
          (step, i) =>
            html`<${Box}
              key=${step.position}
              step=${step}
              middle=${layout.boxes[i]}
              names=${names}
              critical=${path?.has(step.position)}
              chosen=${chosen === step.position}
              onChoose=${onChoose}
            />`,
        )}
      </svg>`}
    </div>`;
  }
}

function Box({ step, middle, names, critical, chosen, onChoose }) {
  const { position, worker, subtask, status, span, reads } = step;
  const [state, fallback] = [stateOf(step), fallbackOf(step)];
  const choose = () => onChoose(chosen ? null : position);
  const press = (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      choose();
    }
    const way = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (way) {
      event.preventDefault();
      const boxes = [...event.currentTarget.parentNode.querySelectorAll(".step-box")];
      boxes[boxes.indexOf(event.currentTarget) + way]?.focus();
    }
  };
  const said = [
    `Step ${position}: ${worker}, ${word(state)}${fallback ? ` ${fallback}` : ""}`,
    reads.length ? `reads ${reads.join(", ")}` : "reads no other step",
    span ? `${seconds(took(span))}, ${priced(span.spent.cost_usd, span.spent.unpriced)}` : "",
    line(subtask, 200),
  ];
  return html`<g
    class=${`step-box ${tone(state)} ${status} ${critical ? "critical" : ""} ${chosen ? "chosen" : ""}`}
    transform=${`translate(${(middle.x - BOX.width / 2).toFixed(1)},${(middle.y - BOX.height / 2).toFixed(1)})`}
    tabindex="0"
    role="button"
    aria-pressed=${chosen ? "true" : "false"}
    aria-label=${said.filter(Boolean).join(". ")}
    onClick=${choose}
    onKeyDown=${press}
  >
    <rect class="box" width=${BOX.width} height=${BOX.height} rx="7" />
    <rect class="swatch" x="0" y="9" width="4" height=${BOX.height - 18} rx="2" style=${{ fill: colour(fallback ?? worker, names) }} />
    <text class="who" x="14" y="22">${line(worker, 17)}</text>
    <text class="state" x=${BOX.width - 12} y="22" text-anchor="end">${sign(state)}</text>
    <text class="what" x="14" y="39">${line(subtask, 27)}</text>
    <text class="figure" x="14" y="53">
      ${fallback ? `↪ ${line(fallback, 9)}  ·  ` : ""}${span ? `${seconds(took(span))}  ·  ${priced(span.spent.cost_usd, span.spent.unpriced)}${span.reply?.cached ? "  ·  cached" : ""}` : word(status)}
    </text>
  </g>`;
}
