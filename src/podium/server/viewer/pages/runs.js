// Runs: the folders of training and evaluation, the latest first.
import { Component, html } from "../html.js";
import { moment, percent, plural, short } from "../format.js";
import { to } from "../address.js";
import { requestJson } from "../api.js";
import { ErrorNote, line } from "../text.js";

export class RunsPage extends Component {
  constructor(props) {
    super(props);
    this.state = { runs: null, error: null };
  }

  componentDidMount() {
    this.reading = new AbortController();
    requestJson("/api/runs", { signal: this.reading.signal }).then(
      ({ runs }) => this.setState({ runs }),
      (error) => this.reading.signal.aborted || this.setState({ error }),
    );
  }

  componentWillUnmount() {
    this.reading.abort();
  }

  render(_, { runs, error }) {
    return html`<div>
      <h1>Runs</h1>
      ${error && html`<${ErrorNote} error=${error} />`}
      ${runs === null && !error && html`<p class="none loading" role="status">Reading the runs …</p>`}
      ${runs?.length === 0 && html`<p class="none">There is no run in the server's folder of runs. <code>podium train</code> makes one.</p>`}
      <ul class="run-list">
        ${(runs ?? []).map(
          ({ name, kind, iterations, updated_at, latest }) => html`<li key=${name}>
            <a href=${to(["runs", name])}>${line(name, 80)}</a>
            <span class="none">${kind === "training" ? `training, ${plural(iterations, "row")}` : "evaluation"}</span>
            <span class="run-latest">${Object.entries(latest).map(([key, value]) => html`<span>${key} <b>${said(key, value)}</b></span>`)}</span>
            <span class="none">${moment(updated_at)}</span>
          </li>`,
        )}
      </ul>
    </div>`;
  }
}

function said(key, value) {
  return ["accuracy", "valid"].includes(key) ? percent(value) : short(value);
}
