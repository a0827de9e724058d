// The traces that pass the filters, newest first: only the rows in sight are drawn, and pages are fetched as far
// as the user scrolls. Rows are links; arrow keys move between them.
import { Component, createRef, html } from "./html.js";
import { count, moment, plural, priced, seconds } from "./format.js";
import { Mark } from "./status_mark.js";
import { to } from "./address.js";
import { requestJson } from "./api.js";
import { ErrorNote, line } from "./text.js";

const PAGE = 200;
const AROUND = 8;
const NARROW = matchMedia("(max-width: 700px)");

export class TraceList extends Component {
  constructor(props) {
    super(props);
    this.frame = createRef();
    this.rows = [];
    this.next = null;
    this.state = { top: 0, height: 600, current: 0, count: 0, total: null, damaged: 0, loading: true, error: null, narrow: NARROW.matches };
    this.turn = () => this.setState({ narrow: NARROW.matches });
    this.scrolled = () => {
      this.drawing ??= requestAnimationFrame(() => {
        this.drawing = null;
        if (!this.frame.current) return;
        const top = this.frame.current.scrollTop;
        this.setState({ top }, () => this.fill());
        clearTimeout(this.noting);
        this.noting = setTimeout(() => history.replaceState({ top }, ""), 200);
      });
    };
    this.press = this.press.bind(this);
  }

  componentDidMount() {
    NARROW.addEventListener("change", this.turn);
    this.watch = new ResizeObserver(([entry]) => this.setState({ height: entry.contentRect.height }, () => this.fill()));
    this.watch.observe(this.frame.current);
    this.reading = new AbortController();
    this.fill();
  }

  componentWillUnmount() {
    NARROW.removeEventListener("change", this.turn);
    this.watch.disconnect();
    this.reading.abort();
    cancelAnimationFrame(this.drawing);
    clearTimeout(this.noting);
  }

  /** Whoever goes back to the list finds it where it was. */
  comeBack() {
    if (this.returned) return;
    this.returned = true;
    if (history.state?.top) this.frame.current.scrollTop = history.state.top;
  }

  get tall() {
    return this.state.narrow ? 84 : 40;
  }

  /** The row of headings stands over the others. */
  get head() {
    return this.state.narrow ? 0 : 36;
  }

  /** Fetch pages until the rows in sight, and a page beyond them, are there. */
  async fill() {
    if (this.filling) return;
    this.filling = true;
    try {
      while (!this.reading.signal.aborted && this.wanted() && !this.ended) {
        this.setState({ loading: true });
        const query = new URLSearchParams({ ...this.props.filters, limit: PAGE, ...(this.next && { cursor: this.next }) });
        const page = await requestJson(`/api/traces?${query}`, { signal: this.reading.signal });
        this.rows.push(...page.traces);
        this.next = page.next;
        this.ended = !page.next;
        this.setState({ count: this.rows.length, total: page.total ?? this.state.total, damaged: this.state.damaged + page.damaged, error: null }, () => this.comeBack());
      }
    } catch (error) {
      if (!this.reading.signal.aborted) this.setState({ error });
    } finally {
      this.filling = false;
      if (!this.reading.signal.aborted) this.setState({ loading: false });
    }
  }

  wanted() {
    const { scrollTop = 0, clientHeight = 600 } = this.frame.current ?? {};
    return (scrollTop + clientHeight) / this.tall + PAGE / 2 > this.rows.length;
  }

  press(event) {
    const { current, height } = this.state;
    const page = Math.max(1, Math.floor(height / this.tall) - 1);
    const last = this.rows.length - 1;
    const wanted = {
      ArrowDown: current + 1,
      ArrowUp: current - 1,
      PageDown: current + page,
      PageUp: current - page,
      Home: 0,
      End: last,
    }[event.key];
    if (wanted === undefined || event.target.closest("input")) return;
    event.preventDefault();
    this.moveTo(Math.min(last, Math.max(0, wanted)));
  }

  moveTo(current) {
    const frame = this.frame.current;
    const top = current * this.tall;
    if (top < frame.scrollTop) frame.scrollTop = top;
    else if (top + this.tall + this.head > frame.scrollTop + frame.clientHeight)
      frame.scrollTop = top + this.tall + this.head - frame.clientHeight;
    this.setState({ current, top: frame.scrollTop }, () => {
      frame.querySelector(`[data-row="${current}"] a`)?.focus({ preventScroll: true });
      this.fill();
    });
  }

  render({ chosen, onChoose }, { top, height, current, count: there, total, damaged, loading, error, narrow }) {
    const tall = this.tall;
    const all = this.ended ? there : Math.max(there, total ?? there + 20);
    const first = Math.max(0, Math.floor(top / tall) - AROUND);
    const last = Math.min(all, Math.ceil((top + height) / tall) + AROUND);
    const shown = [];
    for (let i = first; i < last; i++) shown.push(i);
    return html`<div>
      <p class="list-note" role="status">
        ${error ? "" : there === 0 && !loading ? "No trace passes these filters." : said(there, total, loading, this.ended)}${damaged > 0 && ` ${plural(damaged, "damaged trace")} left out.`}
      </p>
      ${error && html`<${ErrorNote} error=${error} />`}
      <div class=${`list ${narrow ? "narrow" : ""}`} role="table" aria-label="Traces" aria-rowcount=${all + 1}>
        <div class="list-frame" ref=${this.frame} onScroll=${this.scrolled} onKeyDown=${this.press} role="presentation">
          <div class="list-head" role="row" aria-rowindex="1">
            ${["", "status", "question", "planner", "workers", "calls", "cost", "time", "asked"].map(
              (name) =>
                html`<span role="columnheader" class=${`c-${name || "pick"}`}>${name || html`<span class="aside">compare</span>`}</span>`,
            )}
          </div>
          <div class="list-whole" role="rowgroup" style=${{ height: `${all * tall}px` }}>
            ${shown.map((i) => {
              const trace = this.rows[i];
              const style = { transform: `translateY(${i * tall}px)`, height: `${tall}px` };
              return trace
                ? html`<${Row}
                    key=${i}
                    trace=${trace}
                    number=${i}
                    style=${style}
                    current=${i === current}
                    picked=${chosen.includes(trace.id)}
                    onPick=${() => onChoose(trace.id)}
                    onFocus=${() => i !== current && this.setState({ current: i })}
                  />`
                : html`<div key=${i} class="list-row to-come" style=${style}></div>`;
            })}
          </div>
        </div>
      </div>
    </div>`;
  }
}

function said(there, total, loading, ended) {
  if (ended) return plural(there, "trace");
  const of = total == null ? "" : ` of ${count(total)}`;
  return `${count(there)}${of} traces read${loading ? " …" : ""}`;
}

function Row({ trace, number, style, current, picked, onPick, onFocus }) {
  const { id, status, question, planner, workers, calls, cost_usd, unpriced, seconds: took, started_at } = trace;
  return html`<div class=${`list-row ${current ? "current" : ""}`} role="row" aria-rowindex=${number + 2} data-row=${number} style=${style}>
    <span role="cell" class="c-pick">
      <input type="checkbox" aria-label=${`Compare ${line(question, 60)}`} tabindex=${current ? 0 : -1} checked=${picked} onChange=${onPick} />
    </span>
    <span role="cell" class="c-status"><${Mark} state=${status} /></span>
    <span role="cell" class="c-question">
      <a href=${to(["traces", id])} tabindex=${current ? 0 : -1} onFocus=${onFocus}>${line(question, 200) || "(empty)"}</a>
    </span>
    <span role="cell" class="c-planner">${line(planner, 40)}</span>
    <span role="cell" class="c-workers">${line((workers ?? []).join(", "), 80)}</span>
    <span role="cell" class="c-calls">${count(calls)}</span>
    <span role="cell" class="c-cost">${priced(cost_usd, unpriced)}</span>
    <span role="cell" class="c-time">${seconds(took)}</span>
    <span role="cell" class="c-asked">${moment(started_at)}</span>
  </div>`;
}
