// The pool: workers, prices and current state. Reloaded every few seconds while it is open.
import { Component, html } from "../html.js";
import { count, percent, seconds } from "../format.js";
import { Mark, colour } from "../status_mark.js";
import { readPool } from "../pool_choice.js";
import { ErrorNote, line } from "../text.js";

const EVERY_MS = 5000;

export class PoolPage extends Component {
  constructor(props) {
    super(props);
    this.state = { pool: null, error: null };
  }

  componentDidMount() {
    this.reading = new AbortController();
    this.read();
  }

  componentWillUnmount() {
    this.reading.abort();
    clearTimeout(this.waiting);
  }

  async read() {
    try {
      this.setState({ pool: await readPool(this.reading.signal), error: null });
    } catch (error) {
      if (this.reading.signal.aborted) return;
      this.setState({ error });
      if (error.status === 401) return; // Another try would open the dialog again.
    }
    if (!this.reading.signal.aborted) this.waiting = setTimeout(() => this.read(), EVERY_MS);
  }

  render(_, { pool, error }) {
    const names = pool?.workers.map(({ name }) => name);
    return html`<div>
      <h1>Pool</h1>
      ${error && html`<${ErrorNote} error=${error} />`}
      ${!pool && !error && html`<p class="none loading" role="status">Reading the pool …</p>`}
      <ul class="workers">
        ${(pool?.workers ?? []).map((worker) => html`<${Worker} key=${worker.name} worker=${worker} hue=${colour(worker.name, names)} />`)}
      </ul>
      ${pool &&
      html`<h2>Planners</h2>
        <p class="tags">${pool.planners
          .filter((name) => !name.includes(":") || name === pool.configured)
          .map((name) => html`<span class="tag">${line(name, 60)}${name === pool.configured ? ", as configured" : ""}</span>`)}</p>
        <p class="none">Besides: any worker alone, straight or by vote.</p>`}
    </div>`;
  }
}

function Worker({ worker, hue }) {
  const { name, number, description, skills, price, sees, calls_tools, state, error, calls } = worker;
  const figures = [
    ["dollars in", per(price?.input)],
    ["dollars out", per(price?.output)],
    ["typical time", worker.latency_s == null ? "–" : seconds(worker.latency_s)],
    ["median", seconds(worker.median_s)],
    ["90th percentile", seconds(worker.p90_s)],
    ["calls kept", count(calls)],
    ["of them failed", calls ? percent(worker.error_share) : "–"],
    ["since the start", `${count(worker.attempts)} calls`],
    ["failed", count(worker.failures)],
    ["retried", count(worker.retries)],
    ["in flight", count(worker.in_flight)],
    ["waiting", count(worker.waiting)],
    ...(worker.plan_format ? [["asked for plans", worker.plan_format]] : []),
  ];
  return html`<li class="worker">
    <header>
      <span class="number-of" style=${{ background: hue }} aria-hidden="true"></span>
      <h2>${line(name, 60)} <small>${number}</small></h2>
      <${Mark} state=${state === "closed" && !worker.attempts ? "idle" : state} />
    </header>
    <p class="description">${line(description, 600)}</p>
    <p class="tags">
      ${skills.map((skill) => html`<span class="tag">${line(skill, 40)}</span>`)}
      ${sees && html`<span class="tag">sees images</span>`} ${calls_tools && html`<span class="tag">calls tools</span>`}
    </p>
    ${error && html`<p class="trouble">${line(error, 600)}</p>`}
    <dl class="facts">${figures.map(([label, value]) => html`<div><dt>${label}</dt><dd>${value}</dd></div>`)}</dl>
  </li>`;
}

/** Dollars for a million tokens; undefined where the pool's file gives no price: Spend counts such calls as unpriced. */
function per(usd) {
  if (usd == null) return "no price";
  return usd ? `${usd < 10 ? Number(usd.toFixed(3)) : usd.toFixed(0)} / M` : "0";
}
