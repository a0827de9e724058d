// One run: what it trains on, alarms, curves, which grow while it trains, its comparison, iterations, and settings.
import { Component, html } from "../html.js";
import { Frontier } from "../frontier.js";
import { Iterations } from "../iterations.js";
import { Alarms, Figures } from "../run_figures.js";
import { count, money, percent, plural, seconds, short } from "../format.js";
import { to } from "../address.js";
import { follow, requestJson, runPath } from "../api.js";
import { ErrorNote, Text, line } from "../text.js";

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
    const path = runPath(this.props.name);
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
      ${run && html`<${Facts} configuration=${run.configuration} />`}
      ${rows.length > 0 && html`<${Alarms} rows=${rows} /><${Figures} rows=${rows} />`}
      ${comparison && html`<${Comparison} comparison=${comparison} />`}
      <${Iterations} name=${name} rows=${rows} />
      ${run &&
      html`<details class="plan-text"><summary>Settings</summary><${Text} text=${JSON.stringify(run.configuration, null, 2)} /></details>`}
    </div>`;
  }
}

/** What the run trains on: the questions of its configuration, the pool, the model that it starts from. */
function Facts({ configuration }) {
  const { tasks, task_limit: most, pool, start, stage, grpo, sft } = configuration ?? {};
  const facts = [
    ["questions", tasks && `${tasks}${grpo ? ", train split" : ""}${most ? `, at most ${count(most)}` : ""}`],
    ["pool", pool],
    ["start", start],
    ["stage", stage],
    ["examples", stage === "sft" && sft?.examples],
  ].filter(([, value]) => typeof value === "string");
  if (!facts.length) return null;
  return html`<dl class="facts">
    ${facts.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${line(value, 80)}</dd></div>`)}
  </dl>`;
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
