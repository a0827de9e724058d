// Curves over iterations, drawn by uPlot: one or several series, in the colours of the theme, live.
import { Component, createRef, html } from "./html.js";
import { short } from "./format.js";
import { Term } from "./term.js";
import uPlot from "./vendor/uplot/uPlot.esm.js";

const HEIGHT = 190;

export class Curves extends Component {
  constructor(props) {
    super(props);
    this.frame = createRef();
    this.state = { at: null };
    this.redraw = () => this.draw();
  }

  componentDidMount() {
    this.watch = new ResizeObserver(([entry]) => {
      const width = Math.floor(entry.contentRect.width);
      if (width && this.plot && width !== this.plot.width) this.plot.setSize({ width, height: HEIGHT });
      else if (width && !this.plot) this.draw();
    });
    this.watch.observe(this.frame.current);
    document.addEventListener("themechange", this.redraw);
  }

  componentWillUnmount() {
    this.watch.disconnect();
    document.removeEventListener("themechange", this.redraw);
    this.plot?.destroy();
  }

  componentDidUpdate(before) {
    if (!this.plot || before === this.props) return; // Data that are set again would undo a zoom.
    if (before.series.map((one) => one.name).join() === this.props.series.map((one) => one.name).join()) {
      this.plot.setData(this.data);
    } else {
      this.draw();
    }
  }

  get data() {
    return [this.props.x, ...this.props.series.map((one) => one.values)];
  }

  draw() {
    this.plot?.destroy();
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const { series, percent, xName } = this.props;
    const figure = (value) => said(value, percent);
    const axis = {
      stroke: colour("--quiet"),
      font: `12px ${style.getPropertyValue("--sans")}`,
      grid: { stroke: colour("--line"), width: 1 },
      ticks: { show: false },
    };
    this.plot = new uPlot(
      {
        width: this.frame.current.clientWidth,
        height: HEIGHT,
        cursor: { y: false, points: { size: 7 } },
        legend: { show: series.length > 1 },
        hooks: { setCursor: [(plot) => plot.cursor.idx !== this.state.at && this.setState({ at: plot.cursor.idx ?? null })] },
        scales: { x: { time: false }, y: { range: (u, low, high) => bounds(low, high, percent) } },
        axes: [
          { ...axis, size: 28 },
          { ...axis, size: 56, values: (u, ticks) => ticks.map(figure) },
        ],
        series: [
          { label: xName, value: (u, value) => short(value) },
          ...series.map(({ name, hue }, i) => ({
            label: name,
            stroke: colour(`--hue-${(hue ?? i) % 9}`),
            width: 1.75,
            spanGaps: true,
            value: (u, value) => figure(value),
            points: { show: this.props.x.length < 3, size: 5 },
          })),
        ],
      },
      this.data,
      this.frame.current,
    );
  }

  render({ title, note, definition, series, x, xName, percent, wide }, { at }) {
    const single = series.length === 1 ? series[0].values : null;
    const last = single && said(single.findLast((value) => value != null), percent);
    const shown = single && at != null && single[at] != null ? `${said(single[at], percent)} at ${xName} ${x[at]}` : last;
    return html`<figure class=${wide ? "curves wide" : "curves"}>
      <figcaption>
        <b><${Term} definition=${definition}>${title}<//></b>${note && html` <small>${note}</small>`}
        ${shown && html`<span class="latest">${shown}</span>`}
      </figcaption>
      <div class="plot" ref=${this.frame} role="img" aria-label=${`${title} over ${x.length} points${last ? `, latest ${last}` : ""}`}></div>
    </figure>`;
  }
}

function said(value, percent) {
  return value == null ? "–" : percent ? `${(100 * value).toFixed(1)}%` : short(value);
}

/** A little room above and below. Shares stay within 0 and 1, and are not stretched when they hardly move. */
function bounds(low, high, percent) {
  if (low == null) return [0, 1];
  const room = Math.max((high - low) * 0.08, percent ? 0.02 : Math.abs(high) * 0.02 || 0.5);
  return percent ? [Math.max(0, low - room), Math.min(1.0001, high + room)] : [low < 0 ? low - room : Math.max(0, low - room), high + room];
}
