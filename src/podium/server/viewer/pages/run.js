// One run: what it trains on, alarms, curves, which grow while it trains, its comparison, iterations, and settings.
import { Component, html } from "../html.js";
import { Comparison } from "../comparison_table.js";
import { Iterations } from "../iterations.js";
import { RunFacts } from "../run_facts.js";
import { Alarms, Figures } from "../run_figures.js";
import { moment, plural } from "../format.js";
import { to } from "../address.js";
import { ApiError, pause, requestChanged, runPath } from "../api.js";
import { ErrorNote, Text, line } from "../text.js";

const EVERY_MS = 1000;
const MOST_FAILURES = 8;

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
  }

  async watch() {
    const { signal } = this.reading;
    for (let tag = null, failures = 0; !signal.aborted; ) {
      try {
        const changed = await requestChanged(runPath(this.props.name), tag, { signal });
        failures = 0;
        if (changed) this.show(changed.json, tag ? Date.now() : null);
        tag = changed?.tag ?? tag;
      } catch (error) {
        if (!tag || !(error instanceof ApiError && error.passes) || ++failures > MOST_FAILURES) throw error;
      }
      await pause(EVERY_MS * 2 ** failures, signal);
    }
  }

  /** A comparison that is drawn already is not drawn again, which would undo a curve's zoom. */
  show(run, latest) {
    const same = JSON.stringify(run.comparison) === JSON.stringify(this.state.comparison);
    this.setState({ run, rows: run.metrics, comparison: same ? this.state.comparison : run.comparison, latest });
  }

  render({ name }, { run, rows: lines, comparison, latest, error }) {
    const rows = lines.filter(Boolean); // A damaged line comes as null.
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
