// One run: its curves, which grow while it trains, its comparison, and its settings.
import { Component, html } from "../html.js";
import { Curves } from "../curves.js";
import { Frontier } from "../frontier.js";
import { money, percent, plural, seconds, short } from "../format.js";
import { to } from "../address.js";
import { follow, requestJson } from "../api.js";
import { ErrorNote, Text, line } from "../text.js";

const KNOWN = [
  ["reward", "Reward", "mean over rollouts"],
  ["accuracy", "Accuracy", "share of rollouts that were right", true],
  ["valid", "Valid plans", "share of plans that could be run", true],
  ["steps", "Steps", "mean of a valid plan"],
  ["calls", "Calls", "mean a question"],
  ["cost_usd", "Cost", "dollars a question"],
  ["entropy", "Entropy", "nats a token"],
  ["kl", "Distance from the start", "nats a rollout"],
  ["completion_tokens", "Length of a plan", "tokens"],
  ["zero_variance_groups", "Groups of equal rewards", "share", true],
  ["cut_off", "Plans cut off", "share", true],
  ["loss", "Loss", ""],
];
const FORMER = { zero_variance_groups: "dead_groups" }; // keys of metrics files that were written before a rename
const EVERY_MS = 100;

export class RunPage extends Component {
  constructor(props) {
    super(props);
    this.state = { run: null, rows: [], comparison: null, live: false, error: null };
  }

  componentDidMount() {
    this.reading = new AbortController();
    this.watch().catch((error) => this.reading.signal.aborted || this.setState({ error }));
  }

  componentWillUnmount() {
    this.reading.abort();
    clearTimeout(this.drawing);
  }

  async watch() {
    const { signal } = this.reading;
    const path = `/api/runs/${this.props.name.split("/").map(encodeURIComponent).join("/")}`;
    const run = await requestJson(path, { signal });
    let rows = run.metrics;
    this.setState({ run, rows, comparison: run.comparison });
    await follow(`${path}/events`, {
      signal,
      onBegin: () => `${path}/events?after=${rows.length}`,
      onEvent: (type, data) => {
        if (type === "row") rows = [...rows.slice(0, data.number), data.row];
        if (type === "rewound") rows = rows.slice(0, data.rows);
        if (type === "comparison") this.setState({ comparison: data.comparison });
        this.drawing ??= setTimeout(() => {
          this.drawing = null;
          this.setState({ rows, live: type === "row" || this.state.live });
        }, EVERY_MS);
        return false;
      },
    });
  }

  render({ name }, { run, rows, comparison, live, error }) {
    return html`<div>
      <p class="trail"><a href=${to(["runs"])}>Runs</a> / ${line(name, 80)}</p>
      <div class="run-head">
        <h1>${line(name, 80)}</h1>
        <p role="status" class="none">${run ? plural(rows.length, "row") : "Reading the run …"}${live ? ", growing" : ""}</p>
      </div>
      ${error && html`<${ErrorNote} error=${error} />`}
      ${rows.length > 0 && html`<${Figures} rows=${rows} />`}
      ${comparison && html`<${Comparison} comparison=${comparison} />`}
      ${run &&
      html`<details class="plan-text"><summary>Settings</summary><${Text} text=${JSON.stringify(run.configuration, null, 2)} /></details>`}
    </div>`;
  }
}

function Figures({ rows }) {
  const xName = "iteration" in rows[0] ? "iteration" : "step" in rows[0] ? "step" : "row";
  const x = rows.map((row, i) => row[xName] ?? i);
  const value = (row, key) => row[key] ?? row[FORMER[key]];
  const values = (key) => rows.map((row) => (typeof value(row, key) === "number" ? value(row, key) : null));
  const has = (key) => key !== xName && rows.some((row) => typeof value(row, key) === "number");
  const workers = [...new Set(rows.flatMap((row) => Object.keys(row.workers ?? {})))].sort();
  const held = rows.map((row) => row.evaluation?.accuracy ?? null);
  const curves = KNOWN.filter(([key]) => has(key)).map(([key, title, note, share]) => {
    const series = [{ name: key, values: values(key) }];
    if (key === "accuracy" && held.some((value) => value !== null)) series.push({ name: "held out", values: held });
    return html`<${Curves} key=${key} title=${title} note=${note} percent=${share} x=${x} xName=${xName} series=${series} />`;
  });
  const shares =
    workers.length > 0 &&
    html`<${Curves}
      key="workers"
      wide
      title="Shares of the workers"
      note="of the planned steps"
      percent
      x=${x}
      xName=${xName}
      series=${workers.map((worker, hue) => ({ name: line(worker, 24), hue, values: rows.map((row) => row.workers?.[worker] ?? 0) }))}
    />`;
  return html`<div class="curve-grid">${curves.slice(0, 3)}${shares}${curves.slice(3)}</div>`;
}

function Comparison({ comparison }) {
  return html`<section aria-label="Comparison">
    <h2>Compared on ${plural(comparison.questions, "question")}</h2>
    ${comparison.simulated && html`<p class="note">Simulated workers: these figures compare planners and say nothing of real models.</p>`}
    ${comparison.recorded && html`<p class="note">Recorded responses: times are not known.</p>`}
    <${Frontier} rows=${comparison.rows} />
    <div class="scrolls"><table>
      <thead>
        <tr><th>method</th><th class="number">accuracy</th><th class="number">95% interval</th><th class="number">cost for 1,000</th>
          <th class="number">steps</th><th class="number">calls</th><th class="number">time</th><th class="number">valid plans</th></tr>
      </thead>
      <tbody>
        ${comparison.rows.map(
          (row) => html`<tr>
            <th scope="row">${line(row.label, 60)}</th>
            <td class="number">${percent(row.accuracy.mean)}</td>
            <td class="number">${percent(row.accuracy.low)} to ${percent(row.accuracy.high)}</td>
            <td class="number">${money(1000 * row.cost_usd)}</td>
            <td class="number">${short(row.steps)}</td>
            <td class="number">${short(row.calls)}</td>
            <td class="number">${comparison.recorded ? "–" : seconds(row.latency_s)}</td>
            <td class="number">${percent(row.validity)}</td>
          </tr>`,
        )}
      </tbody>
    </table></div>
  </section>`;
}
