// Why this answer: the planner's reason, the ratings, and what the best worker alone would have cost, as the server computes it.
import { Component, html } from "./html.js";
import { ApiError, requestJson } from "./api.js";
import { count, money, percent, priced } from "./format.js";
import { ErrorNote, Text, line } from "./text.js";
import { colour } from "./worker_colour.js";

const AGAIN_MS = 1000; // A question that has just ended is in the store a moment later.

export class Explanation extends Component {
  constructor(props) {
    super(props);
    this.state = { found: null, error: null };
  }

  componentDidMount() {
    this.reading = new AbortController();
    this.read(true);
  }

  componentWillUnmount() {
    this.reading.abort();
    clearTimeout(this.waiting);
  }

  async read(again) {
    const { signal } = this.reading;
    try {
      const found = await requestJson(`/api/traces/${encodeURIComponent(this.props.id)}/explanation`, { signal });
      this.setState({ found });
    } catch (error) {
      if (signal.aborted) return;
      const missing = error instanceof ApiError && error.status === 404; // Also where no traces are kept.
      if (!missing) this.setState({ error });
      else if (again) this.waiting = setTimeout(() => this.read(false), AGAIN_MS);
    }
  }

  render({ names }, { found, error }) {
    if (error) return html`<${ErrorNote} error=${error} />`;
    if (!found || !(found.reason || found.ratings.length || found.single)) return null;
    const { reason, ratings, single, runner_up, cost_usd, unpriced } = found;
    return html`<section class="explanation" aria-label="Why this answer">
      <h2>Why this answer</h2>
      ${reason && html`<h3>The planner wrote</h3><${Text} text=${reason} fold=${1200} />`}
      ${ratings.length > 0 && html`<${Ratings} ratings=${ratings} names=${names} />`}
      ${single &&
      html`<h3>One worker alone</h3>
        <p>The team cost ${unpriced && !cost_usd ? "an unknown amount" : priced(cost_usd, unpriced)}, planning included.</p>
        <${Alone} single=${single} names=${names} />`}
      ${runner_up && html`<${Alone} single=${runner_up} names=${names} />`}
    </section>`;
  }
}

function Ratings({ ratings, names }) {
  return html`<h3>Ratings on questions like this one</h3>
    <div class="scrolls"><table>
      <thead><tr><th>worker</th><th class="number">right</th><th class="number">an answer</th><th class="number">questions</th><th>kind</th></tr></thead>
      <tbody>
        ${ratings.map(
          (rated) => html`<tr>
            <td><${Named} name=${rated.worker} names=${names} /></td>
            <td class="number">${percent(rated.accuracy, 0)}</td>
            <td class="number">${money(rated.cost_usd)}</td>
            <td class="number">${count(rated.questions)}</td>
            <td>${line(rated.cluster, 40)}</td>
          </tr>`,
        )}
      </tbody>
    </table></div>`;
}

function Alone({ single, names }) {
  const { worker, choice, cost_usd, measured_usd, accuracy } = single;
  const figures = [
    cost_usd && [`about ${money(cost_usd.value)} for this question`, cost_usd.source],
    measured_usd && [`${money(measured_usd.value)} a measured answer`, measured_usd.source],
    accuracy && [`${percent(accuracy.value, 0)} likely right`, accuracy.source],
  ].filter(Boolean);
  return html`<div class="alone">
    <p><b><${Named} name=${worker} names=${names} /></b> <span class="none">${choice}</span></p>
    <dl>${figures.map(([figure, source]) => html`<div><dt>${figure}</dt><dd>${line(source, 400)}</dd></div>`)}</dl>
  </div>`;
}

function Named({ name, names }) {
  return html`<span class="dot" style=${{ background: colour(name, names) }} aria-hidden="true"></span> ${line(name, 60)}`;
}
