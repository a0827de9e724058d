// Two runs side by side: the settings that differ, their curves over each other, and their comparisons.
import { Component, html } from "../html.js";
import { to } from "../address.js";
import { requestJson, runPath } from "../api.js";
import { TwoComparisons } from "../comparison_table.js";
import { plural } from "../format.js";
import { setAndSplit } from "../run_facts.js";
import { OverlaidFigures } from "../run_figures.js";
import { ErrorNote, line } from "../text.js";

export class RunPairPage extends Component {
  constructor(props) {
    super(props);
    this.state = { runs: null, error: null };
  }

  componentDidMount() {
    this.reading = new AbortController();
    const { signal } = this.reading;
    Promise.all(this.props.names.map((name) => requestJson(runPath(name), { signal }))).then(
      (runs) => this.setState({ runs }),
      (error) => signal.aborted || this.setState({ error }),
    );
  }

  componentWillUnmount() {
    this.reading.abort();
  }

  render({ names }, { runs, error }) {
    const labels = names.map((name) => line(name, 60));
    const both = (runs ?? []).map((run, i) => ({ label: labels[i], rows: run.metrics.filter(Boolean), comparison: run.comparison, questions: run.questions.evaluation }));
    return html`<div>
      <p class="trail"><a href=${to(["runs"])}>Runs</a></p>
      <h1>Two runs</h1>
      ${error && html`<${ErrorNote} error=${error} />`}
      ${!runs && !error && html`<p class="none loading" role="status">Reading the runs …</p>`}
      ${runs &&
      html`<${Settings} names=${names} labels=${labels} runs=${runs} />
        ${both.some(({ rows }) => rows.length) && html`<h2>Curves</h2><${OverlaidFigures} runs=${both} />`}
        ${both.some(({ comparison }) => comparison) && html`<${TwoComparisons} runs=${both} />`}`}
    </div>`;
  }
}

/** Set, split and number of rows, and each setting that is not the same in both. */
function Settings({ names, labels, runs }) {
  const [left, right] = runs.map(({ configuration }) => flat(configuration));
  const keys = [...new Set([...left.keys(), ...right.keys()])].sort();
  const differing = keys.filter((key) => left.get(key) !== right.get(key));
  const facts = [
    ["task set of training", ...runs.map(({ questions }) => setAndSplit(questions.training)[0])],
    ["split of training", ...runs.map(({ questions }) => setAndSplit(questions.training)[1])],
    ["rows of metrics", ...runs.map(({ metrics }) => String(metrics.length))],
  ];
  return html`<div class="scrolls"><table class="differing" aria-label="Settings that differ">
      <thead>
        <tr>
          <th></th>
          ${names.map((name, i) => html`<th scope="col"><a href=${to(["runs", name])}>${labels[i]}</a></th>`)}
        </tr>
      </thead>
      <tbody>
        ${[...facts, ...differing.map((key) => [key, left.get(key), right.get(key)])].map(
          ([key, ...values]) => html`<tr key=${key}>
            <th scope="row">${line(key, 80)}</th>
            ${values.map((value) => html`<td>${value === undefined ? html`<span class="none">not set</span>` : line(value, 160)}</td>`)}
          </tr>`,
        )}
      </tbody>
    </table></div>
    <p class="note">${said(keys.length, differing.length)}</p>`;
}

function said(all, differing) {
  if (!all) return "Neither run has settings that can be read.";
  if (!differing) return `All ${plural(all, "setting")} are the same.`;
  return `${plural(differing, "setting")} ${differing === 1 ? "differs" : "differ"}; ${all - differing} others are the same.`;
}

/** Dotted names of all settings, each with its value as text. Lists are values. */
function flat(value, prefix = "", found = new Map()) {
  for (const [key, inner] of Object.entries(value ?? {})) {
    if (inner && typeof inner === "object" && !Array.isArray(inner) && Object.keys(inner).length) flat(inner, `${prefix}${key}.`, found);
    else found.set(prefix + key, typeof inner === "string" ? inner : JSON.stringify(inner));
  }
  return found;
}
