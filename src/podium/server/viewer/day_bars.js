// Dollars a day as stacked bars, one colour for each group. A day's figures appear under the pointer; arrow keys move.
import { Component, createRef, html } from "./html.js";
import { money, plural } from "./format.js";

const TALL = 220;
const ROOM = { left: 64, right: 8, top: 12, bottom: 26 };

/** `days`: ISO days in order; `parts`: {name, hue, usd: Map of day to dollars}, the lowest first; `unpriced`: Map of day to calls. */
export class DayBars extends Component {
  constructor(props) {
    super(props);
    this.frame = createRef();
    this.state = { wide: 0, at: null };
  }

  componentDidMount() {
    this.watch = new ResizeObserver(([entry]) => this.setState({ wide: Math.floor(entry.contentRect.width) }));
    this.watch.observe(this.frame.current);
  }

  componentWillUnmount() {
    this.watch.disconnect();
  }

  press(event) {
    const last = this.props.days.length - 1;
    const at = this.state.at ?? last + 1;
    const wanted = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last }[event.key];
    if (event.key === "Escape") this.setState({ at: null });
    if (wanted === undefined) return;
    event.preventDefault();
    this.setState({ at: Math.min(last, Math.max(0, wanted)) });
  }

  render({ days, parts, unpriced, title }, { wide, at }) {
    const total = (day) => parts.reduce((sum, { usd }) => sum + (usd.get(day) ?? 0), 0);
    const most = Math.max(...days.map(total));
    const top = ceiling(most);
    const step = (wide - ROOM.left - ROOM.right) / days.length;
    const y = (usd) => TALL - ROOM.bottom - (usd / top) * (TALL - ROOM.top - ROOM.bottom);
    const x = (i) => ROOM.left + i * step;
    const every = Math.max(1, Math.ceil(days.length / Math.max(1, Math.floor((wide - ROOM.left) / 76))));
    return html`<figure class="bars">
      <figcaption><b>${title}</b></figcaption>
      <div ref=${this.frame} class="bars-frame">
        ${wide > 0 &&
        html`<svg
          width=${wide}
          height=${TALL}
          role="img"
          tabindex="0"
          aria-label=${`${title}, from ${days[0]} to ${days.at(-1)}; at most ${money(most)} on one day. Arrow keys name each day.`}
          onKeyDown=${(event) => this.press(event)}
          onMouseLeave=${() => this.setState({ at: null })}
          onBlur=${() => this.setState({ at: null })}
        >
          ${[0, top / 2, top].map(
            (usd) => html`<line class="grid" x1=${ROOM.left} x2=${wide - ROOM.right} y1=${y(usd)} y2=${y(usd)} />
              <text x=${ROOM.left - 8} y=${y(usd) + 4} text-anchor="end">${money(usd)}</text>`,
          )}
          ${days.map((day, i) => {
            let below = 0;
            return html`<g key=${day} class=${i === at ? "day near" : "day"} onMouseEnter=${() => this.setState({ at: i })}>
              <rect class="hit" x=${x(i)} y="0" width=${step} height=${TALL - ROOM.bottom} />
              ${parts.map(({ name, hue, usd }) => {
                const part = usd.get(day) ?? 0;
                if (!part) return null;
                below += part;
                const height = y(below - part) - y(below);
                return html`<rect key=${name} x=${x(i) + step * 0.12} y=${y(below)} width=${Math.max(1, step * 0.76)} height=${Math.max(0.5, height)} style=${{ fill: hue }} />`;
              })}
              ${unpriced.get(day) && html`<text class="unpriced" x=${x(i) + step / 2} y=${y(total(day)) - 3} text-anchor="middle">${step < 18 ? "?" : "+?"}</text>`}
              ${i % every === 0 && html`<text x=${x(i) + step / 2} y=${TALL - 8} text-anchor="middle">${shortDay(day)}</text>`}
            </g>`;
          })}
        </svg>`}
      </div>
      <p class="bars-day" role="status">${at == null ? "" : said(days[at], parts, total(days[at]), unpriced.get(days[at]))}</p>
      <ul class="tags">
        ${parts.map(({ name, hue }) => html`<li key=${name} class="tag"><span class="swatch" style=${{ background: hue }} aria-hidden="true"></span>${name}</li>`)}
      </ul>
    </figure>`;
  }
}

function said(day, parts, total, unpriced) {
  const there = parts.filter(({ usd }) => usd.get(day)).map(({ name, usd }) => `${name} ${money(usd.get(day))}`);
  const lacking = unpriced ? `${plural(unpriced, "call")} without a price` : "";
  const sum = !total && unpriced ? "" : money(total) + (there.length ? ` (${there.reverse().join(", ")})` : "");
  return `${day}: ${[sum, lacking].filter(Boolean).join(", ")}`;
}

function shortDay(day) {
  const [, month, date] = day.split("-");
  return `${Number(date)} ${new Date(`${day}T00:00Z`).toLocaleDateString("en-GB", { month: "short", timeZone: "UTC" }) ?? month}`;
}

/** The end of the axis: 1, 2, 4 or 10 times a power of ten. */
function ceiling(most) {
  if (!most) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 4, 10].map((times) => times * power).find((end) => end >= most * 0.999);
}
