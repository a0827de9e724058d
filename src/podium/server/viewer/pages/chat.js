// The chat: a thread of questions, each with its plan, steps, answer and cost; plans may wait for approval.
import { Component, createRef, html } from "../html.js";
import { historyOf, listThreads, newThread, newTurn, onOtherTabs, readThread, removeThread, writeThread } from "../threads.js";
import { PlannerChoice, readPool } from "../pool_choice.js";
import { ThreadList } from "../thread_list.js";
import { Turn } from "../chat_turn.js";
import { waitingPlan } from "../plan_approval.js";
import { ErrorNote, line } from "../text.js";
import { go } from "../address.js";
import { initialView } from "../view_state.js";
import { money, plural } from "../format.js";
import { requestJson } from "../api.js";

const APPROVE = "podium.approve";
const CANCELLED = "You cancelled the question.";
const LEFT = "You left the page while the plan was written.";

export class ChatPage extends Component {
  constructor(props) {
    super(props);
    this.box = createRef();
    this.end = createRef();
    this.planning = new Map(); // Of each turn that is being planned here: its thread, and how to cancel it.
    this.opened = props.id; // The open thread, also before its address has arrived.
    this.begun = new Map(); // Of each turn that was begun here: the view that its events go on from.
    this.state = {
      threads: listThreads(),
      thread: readThread(props.id),
      draft: "",
      approve: localStorage.getItem(APPROVE) === "yes",
      planner: "",
      pool: null,
      error: null,
    };
    this.send = this.send.bind(this);
  }

  componentDidMount() {
    this.stop = onOtherTabs(() => this.refresh());
    readPool().then(
      (pool) => this.setState({ pool }),
      (error) => this.setState({ error }),
    );
    this.box.current.focus({ preventScroll: true });
    this.scroll();
  }

  componentDidUpdate(before) {
    if (before.id === this.props.id) return;
    this.opened = this.props.id;
    this.setState({ error: null });
    this.refresh(() => this.scroll());
    this.box.current.focus({ preventScroll: true });
  }

  componentWillUnmount() {
    this.stop();
    for (const { controller } of this.planning.values()) controller.abort(LEFT);
  }

  refresh(then) {
    this.setState({ threads: listThreads(), thread: readThread(this.opened) }, then);
  }

  scroll() {
    this.end.current?.scrollIntoView({ block: "end" });
  }

  /** Change a thread in the browser's storage, and here if it is open. */
  change(id, change) {
    const thread = readThread(id);
    if (!thread) return; // It was deleted meanwhile.
    try {
      writeThread({ ...thread, ...change(thread) });
    } catch (error) {
      this.setState({ error });
    }
    this.refresh();
  }

  changeTurn(id, key, change) {
    this.change(id, ({ turns }) => ({ turns: turns.map((turn) => (turn.key === key ? { ...turn, ...change } : turn)) }));
  }

  send(event) {
    event?.preventDefault();
    const question = this.state.draft.trim();
    if (!question || this.busy) return;
    this.setState({ draft: "" });
    this.ask(question, this.state.thread?.turns.length ?? 0);
  }

  /** Ask a question as a new turn of the open thread, or of a new one, which goes on from the first `before` turns. */
  async ask(question, before) {
    const thread = this.state.thread ?? newThread(question);
    const turn = newTurn(question, before);
    const history = historyOf(thread.turns.slice(0, before));
    const { approve, planner, pool } = this.state;
    try {
      writeThread({ ...thread, at: Date.now(), turns: [...thread.turns, turn] });
    } catch (error) {
      this.setState({ error, draft: this.state.draft || question });
      return;
    }
    const controller = new AbortController();
    const { signal } = controller;
    this.planning.set(turn.key, { thread: thread.id, controller });
    this.opened = thread.id;
    try {
      if (thread !== this.state.thread) go(["chat", thread.id]);
      this.setState({ error: null });
      this.refresh(() => this.scroll());
      const body = { question, history, ...(planner && { planner }), ...(approve && { dry_run: true }) };
      const reply = await requestJson("/api/ask", { method: "POST", body, signal: approve ? signal : undefined });
      const { id } = reply;
      if (!approve) this.begun.set(turn.key, initialView(id, question, planner || pool?.configured));
      this.changeTurn(
        thread.id,
        turn.key,
        approve ? { state: "waiting", id, plan: waitingPlan(reply), cost: reply.podium.cost_usd } : { state: "running", id },
      );
      this.scroll();
      // A question that needs no approval runs without a waiting request: only its id cancels it.
      if (!approve && signal.reason === CANCELLED) await this.cancelRunning(turn.key, id);
    } catch (error) {
      const stopped = approve && signal.aborted;
      const how = stopped ? { status: "cancelled", error: signal.reason } : { status: "failed", error: error.message, id: error.trace, cost: error.cost ?? 0 };
      this.changeTurn(thread.id, turn.key, { state: "ended", ...how });
    } finally {
      this.planning.delete(turn.key);
    }
  }

  async run(thread, turn, workflow) {
    const body = { plan_id: turn.plan.id, ...(workflow && { workflow }) };
    await requestJson("/api/ask", { method: "POST", body });
    this.begun.set(turn.key, initialView(turn.plan.id, turn.question));
    this.changeTurn(thread.id, turn.key, { state: "running", plan: null });
  }

  async reject(thread, turn) {
    await requestJson(`/api/ask/${turn.plan.id}`, { method: "DELETE" });
    this.changeTurn(thread.id, turn.key, { state: "ended", status: "cancelled", error: "You rejected the plan.", plan: null });
  }

  get busy() {
    return this.state.thread?.turns.some(({ state, key }) => state === "running" || (state === "planning" && this.planning.has(key)));
  }

  async cancel() {
    for (const { thread, controller } of this.planning.values()) if (thread === this.opened) controller.abort(CANCELLED);
    for (const { state, key, id } of this.state.thread?.turns ?? []) if (state === "running") await this.cancelRunning(key, id);
  }

  async cancelRunning(key, id) {
    try {
      await requestJson(`/api/ask/${id}`, { method: "DELETE" });
    } catch (error) {
      if (!this.busy) return;
      if (error.status === 404) this.begun.delete(key); // It is looked for as after a reload.
      this.setState({ error: error.status === 404 ? null : error });
    }
  }

  remove(id) {
    removeThread(id);
    if (id === this.props.id) go(["chat"]);
    this.refresh();
  }

  again(turn) {
    if (!this.busy) this.ask(turn.question, turn.before);
  }

  render({ id }, { threads, thread, draft, approve, planner, pool, error }) {
    const turns = thread?.turns ?? [];
    return html`<div class="chat" onKeyDown=${(event) => event.key === "Escape" && this.cancel()}>
      <h1 class="aside">Chat</h1>
      <${ThreadList}
        threads=${threads}
        current=${thread?.id}
        onRename=${(id, name) => this.change(id, () => ({ name }))}
        onRemove=${(id) => this.remove(id)}
      />
      <div class="thread">
        ${thread &&
        html`<header>
          <h2>${line(thread.name, 100)}</h2>
          <p class="note thread-cost">${plural(turns.length, "question")}, ${money(turns.reduce((sum, { cost }) => sum + (cost || 0), 0))}</p>
        </header>`}
        ${id && !thread && html`<p class="none">This browser has no such thread. Ask a question to begin a new one.</p>`}
        ${!thread && !id && html`<p class="none empty">Ask the team. Each answer says what it cost, and who gave it.</p>`}
        ${turns.map(
          (turn) => html`<${Turn}
            key=${turn.key}
            turn=${turn}
            begun=${this.begun.get(turn.key)}
            lost=${!this.planning.has(turn.key)}
            onChange=${(change) => this.changeTurn(thread.id, turn.key, change)}
            onRun=${(workflow) => this.run(thread, turn, workflow)}
            onReject=${() => this.reject(thread, turn)}
            onAgain=${() => this.again(turn)}
          />`,
        )}
        ${error && html`<${ErrorNote} error=${error} />`}
        <form class="ask" onSubmit=${this.send} ref=${this.end}>
          <label class="aside" for="message">Message</label>
          <textarea
            id="message"
            ref=${this.box}
            rows="2"
            placeholder=${turns.length ? "Go on" : "Ask the team a question"}
            value=${draft}
            onInput=${(event) => this.setState({ draft: event.currentTarget.value })}
            onKeyDown=${(event) => event.key === "Enter" && !event.shiftKey && !event.isComposing && this.send(event)}
          ></textarea>
          <div class="row">
            <label class="switch">
              <input type="checkbox" role="switch" checked=${approve} onChange=${(event) => this.approve(event.currentTarget.checked)} />
              approve before paying
            </label>
            ${pool &&
            html`<label class="aside" for="chat-planner">Planner</label>
              <${PlannerChoice} id="chat-planner" pool=${pool} value=${planner} onChange=${(planner) => this.setState({ planner })} />`}
            ${this.busy
              ? html`<button type="button" class="second" onClick=${() => this.cancel()}>Cancel</button>`
              : html`<button class="first" disabled=${!draft.trim()}>Send</button>`}
          </div>
        </form>
      </div>
    </div>`;
  }

  approve(approve) {
    localStorage.setItem(APPROVE, approve ? "yes" : "no");
    this.setState({ approve });
  }
}
