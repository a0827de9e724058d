// A plan that waits for approval: each step with its price; worker, subtask and access list edited in place; run or reject.
// The server checks and prices every edit, which costs nothing.
import { Component, html } from "./html.js";
import { moment, money, priced, seconds } from "./format.js";
import { ErrorNote, line } from "./text.js";
import { requestJson } from "./api.js";

const PAUSE_MS = 400;

export class PlanApproval extends Component {
  constructor(props) {
    super(props);
    const { rows, estimate } = props.plan;
    this.state = { rows, estimate, error: null, pricing: false, sending: false };
  }

  componentWillUnmount() {
    clearTimeout(this.waiting);
    this.reading?.abort();
  }

  get edited() {
    return JSON.stringify(this.state.rows) !== JSON.stringify(this.props.plan.rows);
  }

  edit(rows) {
    this.reading?.abort(); // Its reply is the price of other steps.
    this.setState({ rows, pricing: true });
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.price(), PAUSE_MS);
  }

  async price() {
    this.reading?.abort();
    const { signal } = (this.reading = new AbortController());
    const { plan } = this.props;
    const body = { plan_id: plan.id, workflow: written(this.state.rows, plan.workers), dry_run: true };
    try {
      const { podium } = await requestJson("/api/ask", { method: "POST", body, signal });
      this.setState({ estimate: podium.estimate, error: null, pricing: false });
    } catch (error) {
      if (!signal.aborted) this.setState({ error, estimate: null, pricing: false });
    }
  }

  async decide(decision) {
    this.setState({ sending: true });
    try {
      await decision();
    } catch (error) {
      this.setState({ error, sending: false });
    }
  }

  change(number, change) {
    this.edit(this.state.rows.map((row, i) => (i === number ? { ...row, ...change } : row)));
  }

  remove(number) {
    const moved = (reads) => reads.filter((read) => read !== number).map((read) => (read > number ? read - 1 : read));
    this.edit(this.state.rows.filter((_, i) => i !== number).map((row) => ({ ...row, reads: moved(row.reads) })));
  }

  add() {
    const { rows } = this.state;
    const last = rows.at(-1)?.worker ?? this.props.plan.workers[0];
    this.edit([...rows, { worker: last, subtask: "Give the final answer.", reads: [...rows.keys()] }]);
  }

  render({ plan, onRun, onReject, onAgain }, { rows, estimate, error, pricing, sending }) {
    const run = () => onRun(this.edited ? written(rows, plan.workers) : null);
    return html`<form
      class="approval"
      aria-label="Plan that waits for approval"
      onSubmit=${(event) => (event.preventDefault(), this.decide(run))}
    >
      <h3>The plan waits for your approval</h3>
      <ol start="0">
        ${rows.map((row, number) => this.step(row, number, estimate?.steps.find(({ position }) => position === number)))}
      </ol>
      <button type="button" class="quiet" onClick=${() => this.add()}>add a step</button>
      ${error ? html`<${ErrorNote} error=${error} />` : html`<${Price} plan=${plan} estimate=${estimate} pricing=${pricing} />`}
      <div class="row">
        ${error?.status === 404 && html`<button type="button" class="second" onClick=${onAgain}>Ask again</button>`}
        <button type="button" class="second" disabled=${sending} onClick=${() => this.decide(onReject)}>Reject</button>
        <button class="first" disabled=${sending || pricing || !estimate}>Run${estimate ? `, ${about(estimate)}` : ""}</button>
      </div>
    </form>`;
  }

  step({ worker, subtask, reads }, number, price) {
    const { plan } = this.props;
    const toggle = (read) => (reads.includes(read) ? reads.filter((one) => one !== read) : [...reads, read].sort((a, b) => a - b));
    return html`<li key=${number}>
      <div class="step-line">
        <label><span class="aside">Worker of step ${number}</span>
          <select value=${worker} onChange=${(event) => this.change(number, { worker: event.currentTarget.value })}>
            ${plan.workers.map((name) => html`<option value=${name}>${line(name, 40)}</option>`)}
          </select>
        </label>
        <span class="cost" title=${price?.source}>${price ? priced(price.cost_usd.likely, price.unpriced) : "not run"}</span>
        ${this.state.rows.length > 1 &&
        html`<button type="button" class="quiet danger" aria-label=${`Remove step ${number}`} onClick=${() => this.remove(number)}>remove</button>`}
      </div>
      <textarea
        aria-label=${`Subtask of step ${number}`}
        rows=${Math.min(8, 1 + Math.ceil(subtask.length / 70))}
        value=${subtask}
        onInput=${(event) => this.change(number, { subtask: event.currentTarget.value })}
      ></textarea>
      ${number > 0 &&
      html`<fieldset>
        <legend>Sees</legend>
        ${Array.from(
          { length: number },
          (_, read) => html`<label>
            <input
              type="checkbox"
              aria-label=${`Step ${number} sees step ${read}`}
              checked=${reads.includes(read)}
              onChange=${() => this.change(number, { reads: toggle(read) })}
            />
            step ${read}
          </label>`,
        )}
      </fieldset>`}
    </li>`;
  }
}

function about({ cost_usd, unpriced }) {
  return unpriced && !cost_usd.likely ? "an unknown amount" : `about ${priced(cost_usd.likely, unpriced)}`;
}

function Price({ plan, estimate, pricing }) {
  if (pricing || !estimate) return html`<p class="note" role="status">Checking the plan …</p>`;
  const { cost_usd, most_usd, source, unpriced } = estimate;
  const most = unpriced ? ", since a worker has no price" : ` (${money(cost_usd.low)} to ${money(cost_usd.high)}, at most ${money(most_usd)})`;
  const took = estimate.seconds == null ? "" : `, about ${seconds(estimate.seconds.likely)}`;
  return html`<p class="note" role="status">
    Running it costs <b>${about(estimate)}</b>${most}${took}. Planning
    has cost ${plan.unpriced ? "an unknown amount" : money(plan.cost)}. The plan waits until ${moment(plan.expires)}.
    <span class="none"> Estimated from: ${source}</span>
  </p>`;
}

/** The plan in the workflow language. */
function written(rows, workers) {
  const lists = {
    model_id: rows.map(({ worker }) => workers.indexOf(worker)),
    subtasks: rows.map(({ subtask }) => subtask.trim()),
    access_list: rows.map(({ reads }) => reads),
  };
  return Object.entries(lists)
    .map(([name, list]) => `${name} = ${JSON.stringify(list)}`)
    .join("\n");
}

/** What a dry run has said, as a thread keeps it. */
export function waitingPlan({ id, podium }) {
  return {
    id,
    rows: podium.plan.map(({ worker, subtask, reads }) => ({ worker, subtask, reads })),
    workers: podium.workers,
    estimate: podium.estimate,
    cost: podium.cost_usd,
    unpriced: !!podium.usage.conductor.unpriced,
    expires: podium.expires_at,
  };
}
