// One question of a thread: what the user wrote, the plan while it waits, the steps while they run, the answer.
import { Component, html } from "./html.js";
import { cost, unpriced } from "./trace_stats.js";
import { CopyButton } from "./copy_button.js";
import { Feedback } from "./feedback.js";
import { Mark, colour } from "./status_mark.js";
import { Markdown } from "./markdown.js";
import { PlanApproval } from "./plan_approval.js";
import { Text, line } from "./text.js";
import { TracePane } from "./trace_pane.js";
import { priced, seconds } from "./format.js";
import { to } from "./address.js";
import { workersOf } from "./view_state.js";

export class Turn extends Component {
  constructor(props) {
    super(props);
    this.state = { open: false, refused: false };
  }

  render({ turn, begun, lost, onChange, onRun, onReject, onAgain }) {
    const { state } = turn;
    return html`<section class="turn" aria-label=${`Question: ${line(turn.question, 60)}`}>
      <div class="said-by-user"><${Text} text=${turn.question} fold=${2000} /></div>
      ${state === "planning" && !lost && html`<p class="none" role="status">Planning …</p>`}
      ${state === "planning" && lost && this.ended({ ...turn, error: "It is planned in another tab, or the page was closed while the plan was written." }, onAgain)}
      ${state === "waiting" &&
      html`<${PlanApproval} plan=${turn.plan} onRun=${onRun} onReject=${onReject} onAgain=${onAgain} />`}
      ${state === "running" &&
      html`<${TracePane}
        key=${turn.id}
        id=${turn.id}
        begun=${begun}
        draw=${(view, elapsed) => html`<${Running} view=${view} elapsed=${elapsed} />`}
        onFailed=${({ status, message }) => status !== 401 && onChange({ state: "ended", status: "failed", error: message })}
        onEnded=${(view) =>
          onChange({
            state: "ended",
            status: view.status,
            answer: view.answer,
            error: view.error,
            seconds: view.seconds,
            cost: cost(view.rounds),
            unpriced: unpriced(view.rounds),
            outcome: view.trace?.outcome ?? null,
          })}
      />`}
      ${state === "ended" && this.ended(turn, onAgain)}
    </section>`;
  }

  ended(turn, onAgain) {
    const { open, refused } = this.state;
    return html`<div class="said-by-team">
        ${turn.answer == null
          ? html`<p class="none">There is no answer.</p>`
          : html`<div class="answer"><${Markdown} text=${turn.answer} quiet="an empty answer" /></div>`}
        ${turn.error && html`<p class="trouble">${line(turn.error, 2000)}</p>`}
      </div>
      <div class="turn-foot">
        ${turn.status && html`<${Mark} state=${turn.status} />`}
        <span class="cost">${priced(turn.cost, turn.unpriced)}</span>
        ${turn.seconds != null && html`<span>${seconds(turn.seconds)}</span>`}
        ${turn.id && html`<a href=${to(["traces", turn.id])}>trace</a>`}
        ${turn.answer && html`<${CopyButton} text=${turn.answer} label="copy" onRefused=${() => this.setState({ refused: true })} />`}
        <button class="quiet" onClick=${onAgain}>ask again</button>
      </div>
      ${refused && html`<p class="trouble" role="alert">The browser does not let the answer be copied; select it instead.</p>`}
      ${turn.id &&
      turn.answer != null &&
      html`<${Feedback} id=${turn.id} outcome=${turn.outcome} onChange=${(outcome) => this.props.onChange({ outcome })} />`}
      ${turn.id &&
      html`<details class="past-steps" onToggle=${(event) => this.setState({ open: event.currentTarget.open })}>
        <summary>Plan and steps</summary>
        ${open && html`<${TracePane} id=${turn.id} draw=${(view) => html`<${Steps} view=${view} />`} />`}
      </details>`}`;
  }
}

function Running({ view, elapsed }) {
  return html`<${Steps} view=${view} />
    <div class="said-by-team" aria-busy="true">
      <div class="answer" aria-live="polite">
        ${view.answer == null
          ? html`<p class="none">${view.rounds[0]?.plan ? "The team is at work …" : "Planning …"}</p>`
          : html`<${Markdown} text=${view.answer} />`}
      </div>
    </div>
    <div class="turn-foot">
      <${Mark} state=${view.status} /> <span class="cost">${priced(cost(view.rounds), unpriced(view.rounds))}</span> <span>${seconds(elapsed)}</span>
    </div>`;
}

/** Who does what, what it cost, and how far it is. */
function Steps({ view }) {
  const names = workersOf(view);
  return html`${view.rounds.map(
    (round) => html`<ol class="chat-steps" key=${round.number} start="0" aria-label=${view.rounds.length > 1 ? `Round ${round.number + 1}` : "Steps"}>
      ${round.error && html`<li class="trouble">${line(round.error, 500)}</li>`}
      ${round.steps.map(
        ({ position, worker, subtask, reads, status, span }) => html`<li key=${position}>
          <${Mark} state=${status} />
          <b style=${{ color: colour(worker, names) }}>${line(worker, 40)}</b>
          ${span?.answered_by && span.answered_by !== worker && html`<span> answered by ${line(span.answered_by, 40)}</span>`}
          <span class="told">${line(subtask, 300)}</span>
          <span class="none">${reads.length ? `sees ${reads.map((read) => `step ${read}`).join(", ")}` : "sees the question alone"}${span
            ? `, ${priced(span.spent.cost_usd, span.spent.unpriced)}`
            : ""}</span>
        </li>`,
      )}
    </ol>`,
  )}`;
}
