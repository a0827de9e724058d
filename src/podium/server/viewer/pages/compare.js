// Two traces side by side, and what differs between them.
import { Component, html } from "../html.js";
import { calls, cost, tokens } from "../facts.js";
import { count, money, seconds } from "../figures.js";
import { Mark } from "../marks.js";
import { to } from "../route.js";
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
            <${TracePane} id=${id} onEnded=${(shown) => this.setState({ ended: { ...this.state.ended, [id]: shown } })} />
          </div>`,
        )}
      </div>
    </div>`;
  }
}

const ROWS = [
  ["planner", (shown) => line(shown.planner, 40)],
  ["status", (shown) => html`<${Mark} state=${shown.status} />`],
  ["time", (shown) => seconds(shown.seconds), (shown) => shown.seconds, seconds],
  ["cost", (shown) => money(cost(shown.rounds)), (shown) => cost(shown.rounds), money],
  ["calls", (shown) => count(calls(shown.rounds)), (shown) => calls(shown.rounds), count],
  ["tokens", (shown) => count(tokens(shown.rounds)), (shown) => tokens(shown.rounds), count],
  ["rounds", (shown) => count(shown.rounds.length), (shown) => shown.rounds.length, count],
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
