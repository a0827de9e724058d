// One question by its id: loaded whole if it has ended, followed event by event while it runs. With `source`, the route
// of a run's traces, it is a rollout, which has always ended. `begun` is the view that the events of a question begun here
// go on from; when it is taken away, the pane begins anew, as after a reload. An error that passes is shown until it has
// passed; any other ends the pane.
import { Component, html } from "./html.js";
import { ApiError, follow, pause, requestJson } from "./api.js";
import { applyEvent, initialView, fromTrace } from "./view_state.js";
import { TraceView } from "./trace_view.js";
import { ErrorNote } from "./text.js";

const EVERY_MS = 50; // Pieces of text that come faster than this are drawn together.
const AGAIN_MS = 1000;
const MOST_TRIES = 600;

export class TracePane extends Component {
  constructor(props) {
    super(props);
    this.state = { view: null, error: null, elapsed: 0 };
  }

  componentDidMount() {
    this.open();
  }

  componentDidUpdate(before) {
    const { id, begun } = this.props;
    if (before.id !== id || (before.begun && !begun)) {
      this.stop();
      this.open();
    }
  }

  componentWillUnmount() {
    this.stop();
  }

  stop() {
    this.reading?.abort();
    clearTimeout(this.drawing);
    clearInterval(this.ticking);
    this.drawing = null;
  }

  async open() {
    const { id, begun } = this.props;
    const reading = (this.reading = new AbortController());
    this.setState({ view: begun ?? null, error: null, elapsed: 0 });
    const { signal } = reading;
    for (let tries = 0; !signal.aborted && !(await this.read(id, begun, reading)); tries++) {
      await pause(Math.min(8000, AGAIN_MS * 2 ** tries), signal);
    }
  }

  /** Whether all is read that can be; else it is to be tried again. */
  async read(id, begun, reading) {
    const { signal } = reading;
    try {
      const trace = begun ? null : await this.kept(id, signal);
      if (trace) this.show(fromTrace(trace));
      else await this.follow(id, signal);
    } catch (error) {
      if (signal.aborted) return true;
      this.setState({ error });
      if (error.passes) return false;
      this.props.onFailed?.(error);
    } finally {
      if (reading === this.reading) clearInterval(this.ticking);
    }
    return true;
  }

  /** The trace, if it has ended: one that runs is not in the store yet. */
  async kept(id, signal) {
    const { source } = this.props;
    try {
      return await requestJson(`${source ?? "/api/traces"}/${encodeURIComponent(id)}`, { signal });
    } catch (error) {
      if (!source && error instanceof ApiError && error.status === 404) return null;
      throw error;
    }
  }

  /** What was begun here but cannot be followed here, as on another replica, is waited for. */
  async await(id, signal) {
    for (let tries = 0; tries < MOST_TRIES && !signal.aborted; tries++) {
      await pause(AGAIN_MS, signal);
      const trace = await this.kept(id, signal);
      if (trace) return this.show(fromTrace(trace));
    }
    if (!signal.aborted) throw new ApiError(404, "What became of this question is not known; look for its trace.");
  }

  async follow(id, signal) {
    let view;
    const tick = () => this.setState({ elapsed: secondsSince((this.props.begun ?? view)?.started) });
    this.ticking = setInterval(tick, 100);
    await follow(`/api/traces/${encodeURIComponent(id)}/events`, {
      signal,
      onBegin: () => {
        view = this.props.begun ?? initialView(id); // The stream begins anew with all that happened so far.
      },
      onEvent: (type, data) => {
        view = applyEvent(view, type, data);
        if (type === "ended") {
          clearInterval(this.ticking);
          this.show(view);
          return true;
        }
        this.drawing ??= setTimeout(() => {
          this.drawing = null;
          this.setState({ view, error: null });
        }, EVERY_MS);
        return false;
      },
    }).catch((error) => {
      if (!this.props.begun || error.status !== 404) throw error;
      return this.await(id, signal);
    });
  }

  show(view) {
    clearTimeout(this.drawing);
    this.drawing = null;
    this.setState({ view, error: null });
    this.props.onEnded?.(view);
  }

  render({ actions, begun, draw, source }, { view, error, elapsed }) {
    if (error) return html`<${ErrorNote} error=${error} />`;
    if (!view) return html`<p class="none loading" role="status">Reading the trace …</p>`;
    if (draw) return draw(view, elapsed);
    return html`<${TraceView} view=${view} elapsed=${elapsed} actions=${actions?.(view)} steady=${!!begun} explained=${!source} />`;
  }
}

/** Of a question begun here by this browser's clock, of others by the server's, which may be ahead. */
function secondsSince(iso) {
  return iso ? Math.max(0, (Date.now() - Date.parse(iso)) / 1000) : 0;
}
