// One trace: all of it, a link to share, its JSON, and the same question for another planner.
import { Component, html } from "../html.js";
import { PlannerChoice, readPool } from "../pool_choice.js";
import { requestJson } from "../api.js";
import { go, to } from "../address.js";
import { CopyButton } from "../copy_button.js";
import { Feedback } from "../feedback.js";
import { ErrorNote, Text, line } from "../text.js";
import { TracePane } from "../trace_pane.js";

const NOT_COPIED = new Error("The browser does not let the link be copied; it is in the address bar.");

export class TracePage extends Component {
  constructor(props) {
    super(props);
    this.state = { pool: null, planner: "", error: null, asking: false };
  }

  async again(view) {
    this.setState({ asking: true, error: null });
    const { planner } = this.state;
    try {
      const { id } = await requestJson("/api/ask", {
        method: "POST",
        body: { question: view.question, ...(planner && { planner }), rounds: view.trace.budget.rounds },
      });
      go(["compare", view.id, id]);
    } catch (error) {
      this.setState({ asking: false, error });
    }
  }

  save(view) {
    const blob = new Blob([JSON.stringify(view.trace, null, 2)], { type: "application/json" });
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: `${view.id}.json` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  async remove(view) {
    if (!this.state.sure) {
      this.setState({ sure: true });
      setTimeout(() => this.setState({ sure: false }), 4000);
      return;
    }
    try {
      await requestJson(`/api/traces/${view.id}`, { method: "DELETE" });
      go(["traces"]);
    } catch (error) {
      this.setState({ error });
    }
  }

  choose(event) {
    if (!event.currentTarget.open || this.state.pool) return;
    readPool().then(
      (pool) => this.setState({ pool }),
      (error) => this.setState({ error }),
    );
  }

  render({ id }, { pool, planner, error, asking, raw, sure }) {
    const actions = (view) =>
      html`<div class="actions">
          <${CopyButton} text=${location.href} label="copy the link" onRefused=${() => this.setState({ error: NOT_COPIED })} />
          ${view.trace &&
          html`<button class="quiet" aria-expanded=${!!raw} onClick=${() => this.setState({ raw: !raw })}>raw JSON</button>
            <button class="quiet" onClick=${() => this.save(view)}>save as a file</button>
            <details class="again" onToggle=${(event) => this.choose(event)}>
              <summary>ask again</summary>
              <div class="field">
                ${pool
                  ? html`<label class="aside" for="again">Planner</label>
                      <${PlannerChoice} id="again" pool=${pool} value=${planner} onChange=${(value) => this.setState({ planner: value })} />
                      <button class="second" disabled=${asking} onClick=${() => this.again(view)}>Ask and compare</button>`
                  : html`<span class="none">Reading the pool …</span>`}
              </div>
            </details>
            <button class="quiet danger" onClick=${() => this.remove(view)}>${sure ? "delete for good?" : "delete"}</button>`}
        </div>
        ${view.trace && html`<${Feedback} id=${view.id} outcome=${view.trace.outcome} />`}
        ${error && html`<${ErrorNote} error=${error} />`}
        ${raw && view.trace && html`<div class="raw"><${Text} text=${JSON.stringify(view.trace, null, 2)} fold=${20000} /></div>`}`;
    return html`<div>
      <p class="trail"><a href=${to(["traces"])}>Traces</a> / <span class="id">${line(id, 40)}</span></p>
      <h1 class="aside">Trace ${line(id, 40)}</h1>
      <${TracePane} key=${id} id=${id} actions=${actions} />
    </div>`;
  }
}
