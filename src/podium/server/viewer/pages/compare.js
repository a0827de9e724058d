// Two traces side by side, with their differences.
import { Component, html } from "../html.js";
import { calls, cost, tokens, unpriced } from "../trace_stats.js";
import { count, money, priced, seconds } from "../format.js";
import { Mark } from "../status_mark.js";
import { to } from "../address.js";
import { line } from "../text.js";
import { TracePane } from "../trace_pane.js";

export class ComparePage extends Component {
  constructor(props) {
    super(props);
    this.state = { ended: {} };
  }

  render({ ids }, { ended }) {
    const both = ids.map((id) => ended[id]);
    return html`<div>
      <h1>Two traces</h1>
      <div class="scrolls difference"><${Difference} both=${both} /></div>
      <div class="pair">
        ${ids.map(
          (id) => html`<div key=${id}>
            <p class="trail"><a href=${to(["traces", id])}>${line(id, 12)}</a></p>
            <${TracePane} id=${id} onEnded=${(view) => this.setState({ ended: { ...this.state.ended, [id]: view } })} />
          </div>`,
        )}
      </div>
    </div>`;
  }
}

const ROWS = [
  ["planner", (view) => line(view.planner, 40)],
  ["status", (view) => html`<${Mark} state=${view.status} />`],
  ["time", (view) => seconds(view.seconds), (view) => view.seconds, seconds],
  ["cost", (view) => priced(cost(view.rounds), unpriced(view.rounds)), (view) => cost(view.rounds), money],
  ["calls", (view) => count(calls(view.rounds)), (view) => calls(view.rounds), count],
  ["tokens", (view) => count(tokens(view.rounds)), (view) => tokens(view.rounds), count],
  ["rounds", (view) => count(view.rounds.length), (view) => view.rounds.length, count],
];

function Difference({ both: [left, right] }) {
  return html`<table>
    <thead><tr><th></th><th>left</th><th>right</th><th class="number">right less left</th></tr></thead>
    <tbody>
      ${ROWS.map(
        ([name, words, figure, unit]) => html`<tr>
          <th scope="row">${name}</th>
          <td>${left ? words(left) : "…"}</td>
          <td>${right ? words(right) : "…"}</td>
          <td class="number">${left && right && figure ? signed(figure(right) - figure(left), unit) : ""}</td>
        </tr>`,
      )}
      <tr>
        <th scope="row">answer</th>
        <td colspan="3">${left && right ? (left.answer === right.answer ? "the same, word for word" : "not the same words") : "…"}</td>
      </tr>
    </tbody>
  </table>`;
}

function signed(value, unit) {
  return value === 0 ? "the same" : (value > 0 ? "+" : "−") + unit(Math.abs(value));
}
