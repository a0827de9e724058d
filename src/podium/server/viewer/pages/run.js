// One run: what it trains on, alarms, curves, which grow while it trains, its comparison, iterations, and settings.
import { Component, html } from "../html.js";
import { Comparison } from "../comparison_table.js";
import { Iterations } from "../iterations.js";
import { RunFacts } from "../run_facts.js";
import { Alarms, Figures } from "../run_figures.js";
import { moment, plural } from "../format.js";
import { to } from "../address.js";
import { follow, requestJson, runPath } from "../api.js";
import { ErrorNote, Text, line } from "../text.js";

const EVERY_MS = 100;

export class RunPage extends Component {
  constructor(props) {
    super(props);
    this.state = { run: null, rows: [], comparison: null, latest: null, error: null };
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
        if (type === "comparison") return this.compare(data.comparison);
        if (type === "row") rows = [...rows.slice(0, data.number), data.row];
        if (type === "rewound") rows = rows.slice(0, data.rows);
        const latest = Date.now();
        this.drawing ??= setTimeout(() => {
          this.drawing = null;
          this.setState({ rows, latest });
        }, EVERY_MS);
        return false;
      },
    });
  }

  /** Every stream begins with the comparison; the one that is drawn is not drawn again, which would undo a curve's zoom. */
  compare(comparison) {
    if (JSON.stringify(comparison) !== JSON.stringify(this.state.comparison)) this.setState({ comparison });
    return false;
  }

  render({ name }, { run, rows: lines, comparison, latest, error }) {
    const rows = lines.filter(Boolean); // A damaged line comes as null, and counts where the stream goes on.
    return html`<div>
      <p class="trail"><a href=${to(["runs"])}>Runs</a> / ${line(name, 80)}</p>
      <div class="run-head">
        <h1>${line(name, 80)}</h1>
        <p role="status" class="none">${run ? plural(lines.length, "row") : "Reading the run …"}${latest ? `, the latest at ${moment(latest)}` : ""}</p>
      </div>
      ${error && html`<${ErrorNote} error=${error} />`}
      ${run && html`<${RunFacts} run=${run} rows=${rows} />`}
      ${rows.length > 0 && html`<${Alarms} rows=${rows} /><${Figures} rows=${rows} />`}
      ${comparison && html`<${Comparison} comparison=${comparison} questions=${run.questions.evaluation} />`}
      <${Iterations} name=${name} rows=${rows} />
      ${run &&
      html`<details class="plan-text"><summary>Settings</summary><${Text} text=${JSON.stringify(run.configuration, null, 2)} /></details>`}
    </div>`;
  }
}
