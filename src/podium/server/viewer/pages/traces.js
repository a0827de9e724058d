// The list of traces, with a search and filters that are part of the address. Two can be selected and compared.
import { Component, html } from "../html.js";
import { readPool } from "../pool_choice.js";
import { amend, go } from "../address.js";
import { line } from "../text.js";
import { TraceList } from "../trace_list.js";

const STATUSES = ["ok", "degraded", "failed", "cancelled", "planned"];
const OUTCOMES = ["right", "wrong", "note", "none"];
const PAUSE_MS = 250;
const NAMES = ["q", "status", "outcome", "planner", "worker", "since", "until", "min_cost", "max_cost"];

export class TracesPage extends Component {
  constructor(props) {
    super(props);
    const filters = Object.fromEntries(NAMES.map((name) => [name, props.query.get(name) ?? ""]));
    this.state = { filters, used: filters, chosen: [], pool: null };
    this.choose = (id) => {
      const { chosen } = this.state;
      this.setState({ chosen: chosen.includes(id) ? chosen.filter((other) => other !== id) : [...chosen, id].slice(-2) });
    };
  }

  componentDidMount() {
    readPool().then(
      (pool) => this.setState({ pool }),
      () => this.setState({ pool: { workers: [], planners: [] } }), // The lists to choose from are a convenience.
    );
  }

  componentWillUnmount() {
    clearTimeout(this.waiting);
  }

  change(name, value, at_once = false) {
    const filters = { ...this.state.filters, [name]: value };
    this.setState({ filters });
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => {
      amend(["traces"], filters); // The place in the list goes with it: it is another list.
      this.setState({ used: filters });
    }, at_once ? 0 : PAUSE_MS);
  }

  render(_, { filters, used, chosen, pool }) {
    const set = (name, at_once) => (event) => this.change(name, event.currentTarget.value, at_once);
    const pick = (name, label, values) =>
      html`<label class="filter">
        <span>${label}</span>
        <select value=${filters[name]} onChange=${set(name, true)}>
          <option value="">any</option>
          ${values.map((value) => html`<option value=${value}>${line(value, 60)}</option>`)}
        </select>
      </label>`;
    const write = (name, label, type, more = {}) =>
      html`<label class="filter">
        <span>${label}</span>
        <input type=${type} value=${filters[name]} onInput=${set(name)} ...${more} />
      </label>`;
    const wide = NAMES.slice(1).some((name) => filters[name]);
    return html`<div class="traces-page">
      <h1 class="aside">Traces</h1>
      <form class="filters" role="search" onSubmit=${(event) => event.preventDefault()}>
        <input
          type="search"
          class="search"
          aria-label="Search the questions"
          placeholder="Search the questions"
          value=${filters.q}
          onInput=${set("q")}
        />
        <button type="button" class="second" disabled=${chosen.length !== 2} onClick=${() => go(["compare", ...chosen])}>
          Compare ${chosen.length} of 2
        </button>
        <details class="more" open=${wide}>
          <summary>Filters${wide ? `: ${NAMES.slice(1).filter((name) => filters[name]).length}` : ""}</summary>
          <div class="filter-row">
            ${pick("status", "status", STATUSES)}
            ${pick("outcome", "outcome", OUTCOMES)}
            ${pick("planner", "planner", withOwn(pool?.planners, filters.planner))}
            ${pick("worker", "worker", withOwn(pool?.workers.map(({ name }) => name), filters.worker))}
            ${write("since", "from", "datetime-local")} ${write("until", "until", "datetime-local")}
            ${write("min_cost", "dollars from", "number", { min: 0, step: "any" })}
            ${write("max_cost", "to", "number", { min: 0, step: "any" })}
          </div>
        </details>
      </form>
      <${TraceList} key=${JSON.stringify(used)} filters=${asked(used)} chosen=${chosen} onChoose=${this.choose} />
    </div>`;
  }
}

function withOwn(values = [], own) {
  return own && !values.includes(own) ? [...values, own] : values;
}

/** The filters as the server takes them: times with a zone. */
function asked(filters) {
  const given = Object.entries(filters).filter(([, value]) => value !== "");
  return Object.fromEntries(
    given.map(([name, value]) => {
      const at = name === "since" || name === "until" ? new Date(value) : null;
      return [name, at && !Number.isNaN(at.getTime()) ? at.toISOString() : value];
    }),
  );
}
