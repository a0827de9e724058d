// Ask a question: its workers and limits, and the running workflow.
import { Component, createRef, html } from "../html.js";
import { PlannerChoice, WorkerChoice, readPool } from "../pool_choice.js";
import { requestJson } from "../api.js";
import { initialView } from "../view_state.js";
import { to } from "../address.js";
import { TracePane } from "../trace_pane.js";
import { ErrorNote } from "../text.js";

const LIMITS = [
  ["usd", "dollars", "0.001", "any"],
  ["calls", "calls", "1", "1"],
  ["seconds", "seconds", "1", "any"],
  ["rounds", "rounds", "1", "1"],
];

export class AskPage extends Component {
  constructor(props) {
    super(props);
    this.box = createRef();
    this.state = {
      question: props.query.get("q") ?? "",
      planner: "",
      allow: [],
      deny: [],
      budget: {},
      pool: null,
      id: null,
      running: false,
      sending: false,
      error: null,
    };
    this.submit = this.submit.bind(this);
    this.cancel = this.cancel.bind(this);
  }

  componentDidMount() {
    this.reading = new AbortController();
    readPool(this.reading.signal).then(
      (pool) => this.setState({ pool }),
      (error) => this.reading.signal.aborted || this.setState({ error }),
    );
    this.box.current.focus({ preventScroll: true });
  }

  componentWillUnmount() {
    this.reading.abort();
  }

  async submit(event) {
    event.preventDefault();
    const { question, planner, allow, deny, budget, running, sending } = this.state;
    if (!question.trim() || running || sending) return;
    const { rounds, ...limits } = given(budget);
    this.setState({ error: null, sending: true });
    try {
      const { id } = await requestJson("/api/ask", {
        method: "POST",
        body: {
          question: question.trim(),
          ...(planner && { planner }),
          ...(allow.length && { allow }),
          ...(deny.length && { deny }),
          ...(Object.keys(limits).length && { budget: limits }),
          ...(rounds && { rounds }),
        },
      });
      this.setState({ id, running: true, sending: false, begun: initialView(id, question.trim(), planner || this.state.pool?.configured) });
    } catch (error) {
      this.setState({ error, sending: false });
    }
  }

  async cancel() {
    try {
      await requestJson(`/api/ask/${this.state.id}`, { method: "DELETE" });
    } catch (error) {
      if (!this.state.running) return;
      if (error.status === 404) this.setState({ begun: null });
      else this.setState({ error });
    }
  }

  render(_, { question, pool, error, id, running, sending, begun }) {
    return html`<div
      onKeyDown=${(event) => event.key === "Escape" && running && this.cancel()}
    >
      <h1 class="aside">Ask</h1>
      <form class="ask" onSubmit=${this.submit}>
        <label class="aside" for="question">Question</label>
        <textarea
          id="question"
          ref=${this.box}
          rows="3"
          placeholder="Ask the team a question"
          value=${question}
          onInput=${(event) => this.setState({ question: event.currentTarget.value })}
          onKeyDown=${(event) => {
            if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
            event.preventDefault();
            event.currentTarget.form.requestSubmit(); // Which looks at the limits first.
          }}
        ></textarea>
        <div class="row">
          <details class="settings">
            <summary>Planner, workers, budget</summary>
            ${pool ? this.settings() : html`<p class="none">Reading the pool …</p>`}
          </details>
          <span class="keys">Enter asks, Shift+Enter breaks the line</span>
          ${running
            ? html`<button type="button" class="second" onClick=${this.cancel}>Cancel</button>`
            : html`<button class="first" disabled=${!question.trim() || sending}>Ask</button>`}
        </div>
      </form>
      ${error && html`<${ErrorNote} error=${error} />`}
      ${id
        ? html`<${TracePane}
            key=${id}
            id=${id}
            begun=${begun}
            onEnded=${() => this.setState({ running: false })}
            onFailed=${() => this.setState({ running: false })}
            actions=${(view) => html`<p class="actions">
              ${view.trace ? html`<a href=${to(["traces", id])}>Open the trace</a>` : html`<span class="none">The trace is kept when it has ended.</span>`}
            </p>`}
          />`
        : html`<p class="none empty">The plan is drawn here, and each step as it runs.</p>`}
    </div>`;
  }

  settings() {
    const { pool, planner, allow, deny, budget } = this.state;
    return html`<div class="choices">
      <div class="field">
        <label for="planner">Planner</label>
        <${PlannerChoice} id="planner" pool=${pool} value=${planner} onChange=${(value) => this.setState({ planner: value })} />
      </div>
      <fieldset>
        <legend>At most</legend>
        <div class="limits">
          ${LIMITS.map(
            ([name, label, least, step]) => html`<label>
              <span>${label}</span>
              <input
                type="number"
                min=${least === "1" ? 1 : 0}
                step=${step}
                inputmode="decimal"
                placeholder=${name === "rounds" ? "as configured" : "no limit"}
                value=${budget[name] ?? ""}
                onInvalid=${(event) => (event.currentTarget.closest("details").open = true)}
                onInput=${(event) => this.setState({ budget: { ...budget, [name]: event.currentTarget.value } })}
              />
            </label>`,
          )}
        </div>
      </fieldset>
      <fieldset>
        <legend>Workers</legend>
        <${WorkerChoice} pool=${pool} allow=${allow} deny=${deny} onChange=${(chosen) => this.setState(chosen)} />
      </fieldset>
    </div>`;
  }
}

function given(budget) {
  return Object.fromEntries(
    Object.entries(budget)
      .filter(([, value]) => value !== "")
      .map(([name, value]) => [name, Number(value)]),
  );
}
