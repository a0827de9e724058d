// Runs: the folders of training and evaluation, the latest first. Two can be selected and compared.
import { Component, html } from "../html.js";
import { moment, percent, plural, short } from "../format.js";
import { go, to } from "../address.js";
import { requestJson } from "../api.js";
import { setAndSplit } from "../run_facts.js";
import { definitionOf } from "../run_figures.js";
import { Term } from "../term.js";
import { ErrorNote, line } from "../text.js";

const OF_AN_EVALUATION = "Share of the questions whose answer is right, of the first method of the comparison: the Conductor, where there is one.";

export class RunsPage extends Component {
  constructor(props) {
    super(props);
    this.state = { runs: null, chosen: [], error: null };
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

  choose(name) {
    const { chosen } = this.state;
    this.setState({ chosen: chosen.includes(name) ? chosen.filter((other) => other !== name) : [...chosen, name].slice(-2) });
  }

  render(_, { runs, chosen, error }) {
    const [one, other] = chosen;
    return html`<div>
      <div class="runs-head">
        <h1>Runs</h1>
        ${runs?.length > 1 &&
        html`<button class="second" disabled=${chosen.length !== 2} onClick=${() => go(["runs", one, "vs", other])}>Compare ${chosen.length} of 2</button>`}
      </div>
      ${error && html`<${ErrorNote} error=${error} />`}
      ${runs === null && !error && html`<p class="none loading" role="status">Reading the runs …</p>`}
      ${runs?.length === 0 && html`<p class="none">There is no run in the server's folder of runs. <code>podium train</code> makes one.</p>`}
      <ul class="run-list">
        ${(runs ?? []).map((run) => html`<${Run} key=${run.name} run=${run} chosen=${chosen.includes(run.name)} onChoose=${() => this.choose(run.name)} />`)}
      </ul>
    </div>`;
  }
}

function Run({ run: { name, kind, iterations, updated_at, latest, questions }, chosen, onChoose }) {
  const training = kind === "training";
  const [set, split] = setAndSplit(training ? questions.training : questions.evaluation);
  const asked = set === split ? "questions not recorded" : `${line(set, 60)}, split ${split}`;
  return html`<li>
    <input type="checkbox" aria-label=${`Compare ${line(name, 60)}`} checked=${chosen} onChange=${onChoose} />
    <a href=${to(["runs", name])}>${line(name, 80)}</a>
    <span class="none">${training ? `training, ${plural(iterations, "row")}` : "evaluation"}</span>
    <span class="none">${asked}</span>
    <span class="run-latest"
      >${Object.entries(latest).map(
        ([key, value]) => html`<span><${Term} definition=${training ? definitionOf(key) : OF_AN_EVALUATION}>${key}<//> <b>${said(key, value)}</b></span>`,
      )}</span
    >
    <span class="none">${moment(updated_at)}</span>
  </li>`;
}

function said(key, value) {
  return ["accuracy", "valid"].includes(key) ? percent(value) : short(value);
}
