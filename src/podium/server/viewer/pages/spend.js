// Spend: dollars by day and by worker, key or planner, accuracy by feedback, and what the budgets leave.
import { Component, html } from "../html.js";
import { DayBars } from "../day_bars.js";
import { count, money, percent, priced } from "../format.js";
import { amend, to } from "../address.js";
import { requestJson } from "../api.js";
import { colour } from "../status_mark.js";
import { Fact, Heading } from "../term.js";
import { ErrorNote, line } from "../text.js";
import { Budgets } from "../budgets.js";
import { readPool } from "../pool_choice.js";

const GROUPS = { worker: "worker", key: "key", planner: "planner" };
const NAMELESS = { worker: "planning", key: "no key", planner: "" };
const MOST_COLOURS = 8;
const DAY_MS = 86_400_000;
const RANGES = [7, 30, 90];
const MEANING = {
  cost: "Dollars of workers and plans, tries without an answer included. Answers from the response cache cost nothing. Calls whose price is not known are left out and counted beside.",
  planning: "Dollars that the planner's own model took to write the plans. They are part of the cost.",
  questions: "Questions that began on these days (UTC), also those that failed. A worker's are those in which it was called.",
  each: "The cost divided by the questions.",
  calls: "Calls of workers that were answered or failed for good, and plans that a model wrote.",
  unpriced: "Calls whose price is not known: the pool's file gives the worker no price, and the provider does not say what the call cost. The dollars leave them out.",
  tokens: "Input and output tokens of these calls.",
  saved: "Dollars that answers from the response cache had cost when they were made, and that were not paid again.",
  right: "Of the questions whose answer a user judged: the share judged right, its 95% interval after Wilson, and how many were judged. Users choose what they judge, so all questions may differ. A worker's are those in which it was called.",
  share: "Part of the cost of all groups.",
};

export class SpendPage extends Component {
  constructor(props) {
    super(props);
    const today = new Date().toISOString().slice(0, 10);
    const asked = (name) => props.query.get(name) ?? "";
    const by = GROUPS[asked("by")] ?? "worker";
    this.state = { since: asked("since") || shifted(asked("until") || today, 1 - RANGES[1]), until: asked("until") || today, today, by, spend: null, error: null };
  }

  componentDidMount() {
    this.read();
  }

  componentWillUnmount() {
    this.reading?.abort();
  }

  async read() {
    this.reading?.abort();
    const reading = (this.reading = new AbortController());
    const { since, until, by } = this.state;
    try {
      const asked = requestJson(`/api/spend?${new URLSearchParams({ since, until, by })}`, { signal: reading.signal });
      const [spend, pool] = await Promise.all([asked, this.state.pool ?? readPool(reading.signal)]);
      if (!reading.signal.aborted) this.setState({ spend, pool, error: null });
    } catch (error) {
      if (!reading.signal.aborted) this.setState({ error, spend: null });
    }
  }

  change(changed) {
    if (Object.values(changed).includes("")) return; // A date that is being typed.
    this.setState(changed, () => {
      const { since, until, by } = this.state;
      amend(["spend"], { since, until, by });
      this.read();
    });
  }

  render(_, { since, until, today, by, spend, pool, error }) {
    const day = (name, label) =>
      html`<label class="filter">
        <span>${label}</span>
        <input type="date" value=${this.state[name]} onChange=${(event) => this.change({ [name]: event.currentTarget.value })} />
      </label>`;
    return html`<div class="spend-page">
      <h1>Spend</h1>
      <form class="filter-row" onSubmit=${(event) => event.preventDefault()}>
        <label class="filter">
          <span>by</span>
          <select value=${by} onChange=${(event) => this.change({ by: event.currentTarget.value })}>
            ${Object.keys(GROUPS).map((name) => html`<option value=${name}>${name}</option>`)}
          </select>
        </label>
        ${day("since", "from (UTC)")} ${day("until", "until")}
        <span class="ranges">
          ${RANGES.map(
            (days) =>
              html`<button
                type="button"
                class="quiet"
                aria-pressed=${until === today && since === shifted(today, 1 - days)}
                onClick=${() => this.change({ since: shifted(today, 1 - days), until: today })}
              >
                ${days} days
              </button>`,
          )}
        </span>
      </form>
      ${error && html`<${ErrorNote} error=${error} />`}
      ${!spend && !error && html`<p class="none loading" role="status">Reading the sums …</p>`}
      ${spend && (spend.total.questions ? html`<${Spent} spend=${spend} workers=${pool.workers.map(({ name }) => name)} />` : html`<${Nothing} />`)}
      ${spend && html`<${Budgets} budgets=${spend.budgets} />`}
    </div>`;
  }
}

function Nothing() {
  return html`<p class="none empty">
    No question began on these days. <a href=${to(["ask"])}>Ask one</a>, send one to <code>/v1/chat/completions</code>, or choose other days.
    Questions that are not kept (<code>"store": false</code>) are not summed.
  </p>`;
}

function Spent({ spend, workers }) {
  const { total, accuracy, groups, by } = spend;
  const parts = stacked(groups, by, workers);
  const unpriced = new Map();
  for (const group of groups) {
    for (const { day, unpriced_calls: calls } of group.days) if (calls) unpriced.set(day, (unpriced.get(day) ?? 0) + calls);
  }
  return html`<div>
    <dl class="facts totals">
      <${Fact} name="cost" definition=${MEANING.cost}>${priced(total.cost_usd, total.unpriced_calls)}<//>
      <${Fact} name="of it planning" definition=${MEANING.planning}>${money(total.planning_usd)}<//>
      <${Fact} name="questions" definition=${MEANING.questions}>${count(total.questions)}<//>
      <${Fact} name="a question" definition=${MEANING.each}>${each(total)}<//>
      <${Fact} name="calls" definition=${MEANING.calls}>${count(total.calls)}<//>
      <${Fact} name="unpriced" definition=${MEANING.unpriced}>${count(total.unpriced_calls)}<//>
      <${Fact} name="saved by the cache" definition=${MEANING.saved}>${money(total.saved_usd)}<//>
      <${Fact} name="judged right" definition=${MEANING.right}>${judged(accuracy)}<//>
    </dl>
    ${total.unpriced_calls > 0 &&
    html`<p class="note">The price of ${count(total.unpriced_calls)} of ${count(total.calls)} calls is not known. Give the worker a <code>price</code> in the pool's file; calls from then on are priced.</p>`}
    ${total.unpaid_usd > 0 && html`<p class="note">${money(total.unpaid_usd)} of the cost is of recorded answers: nobody pays it.</p>`}
    <${DayBars} title=${`Dollars a day, by ${by}`} days=${daysBetween(spend.since, spend.until)} parts=${parts} unpriced=${unpriced} />
    <div class="scrolls"><table aria-label=${`Spend by ${by}`}>
      <thead>
        <tr>
          <${Heading} name=${by} />
          <${Heading} number name="cost" definition=${MEANING.cost} />
          <${Heading} number name="share" definition=${MEANING.share} />
          ${by !== "worker" && html`<${Heading} number name="planning" definition=${MEANING.planning} />`}
          <${Heading} number name="questions" definition=${MEANING.questions} />
          <${Heading} number name="a question" definition=${MEANING.each} />
          <${Heading} number name="calls" definition=${MEANING.calls} />
          <${Heading} number name="unpriced" definition=${MEANING.unpriced} />
          <${Heading} number name="tokens" definition=${MEANING.tokens} />
          <${Heading} number name="judged right" definition=${MEANING.right} />
        </tr>
      </thead>
      <tbody>
        ${groups.map((group) => html`<${Row} key=${group.name ?? ""} group=${group} spend=${spend} />`)}
      </tbody>
    </table></div>
  </div>`;
}

function Row({ group, spend: { by, since, until, total } }) {
  const name = line(group.name ?? NAMELESS[by], 60);
  const filter = by !== "key" && group.name && to(["traces"], { [by]: group.name, since: midnight(since), until: midnight(shifted(until, 1)) });
  return html`<tr>
    <th scope="row">${filter ? html`<a href=${filter}>${name}</a>` : html`<span class=${group.name ? "" : "none"}>${name}</span>`}</th>
    <td class="number">${priced(group.cost_usd, group.unpriced_calls)}</td>
    <td class="number">${group.cost_usd ? percent(group.cost_usd / total.cost_usd) : "–"}</td>
    ${by !== "worker" && html`<td class="number">${money(group.planning_usd)}</td>`}
    <td class="number">${count(group.questions)}</td>
    <td class="number">${each(group)}</td>
    <td class="number">${count(group.calls)}</td>
    <td class="number">${count(group.unpriced_calls)}</td>
    <td class="number">${count(group.tokens)}</td>
    <td class="number">${judged(group.accuracy)}</td>
  </tr>`;
}

/** Dollars of a question; – where no price is known. */
function each({ cost_usd: usd, unpriced_calls: unpriced, questions }) {
  if (!questions || (!usd && unpriced)) return "–";
  return money(usd / questions) + (unpriced ? " and more" : "");
}

function judged(accuracy) {
  if (!accuracy) return "–";
  const { mean, low, high, judged: n } = accuracy;
  return `${percent(mean, 0)} (${percent(low, 0)} to ${percent(high, 0)}, n = ${count(n)})`;
}

/** The dearest groups as parts of bars, the others together. Workers of the pool have the colours of the other pages. */
function stacked(groups, by, workers) {
  const names = by === "worker" ? workers : groups.map(({ name }) => name ?? "");
  const part = (name, hue, days) => ({ name, hue, usd: new Map(days) });
  const shown = groups.filter(({ cost_usd: usd }) => usd > 0);
  const own = shown
    .slice(0, MOST_COLOURS)
    .map(({ name, days }) =>
      part(line(name ?? NAMELESS[by], 40), name === null ? "var(--edge)" : colour(name, names), days.map(({ day, cost_usd }) => [day, cost_usd])),
    );
  const rest = new Map();
  for (const { days } of shown.slice(MOST_COLOURS)) {
    for (const { day, cost_usd: usd } of days) rest.set(day, (rest.get(day) ?? 0) + usd);
  }
  return rest.size ? [...own, part(`${shown.length - MOST_COLOURS} others`, "var(--calm)", rest)] : own;
}

function daysBetween(since, until) {
  const days = [];
  for (let day = since; day <= until; day = shifted(day, 1)) days.push(day);
  return days;
}

/** The moment at which a day of UTC begins, as the filters of Traces write it: in the reader's own time. */
function midnight(day) {
  const at = new Date(`${day}T00:00Z`);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function shifted(day, by) {
  const at = new Date(`${day}T00:00Z`);
  return Number.isNaN(at.getTime()) ? day : new Date(at.getTime() + by * DAY_MS).toISOString().slice(0, 10);
}
