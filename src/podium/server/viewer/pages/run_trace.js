// One rollout of a run, as a trace from the run's own store.
import { html } from "../html.js";
import { runPath } from "../api.js";
import { to } from "../address.js";
import { line } from "../text.js";
import { TracePane } from "../trace_pane.js";

export function RunTracePage({ name, id }) {
  return html`<div>
    <p class="trail">
      <a href=${to(["runs"])}>Runs</a> / <a href=${to(["runs", name])}>${line(name, 80)}</a> / <span class="id">${line(id, 40)}</span>
    </p>
    <h1 class="aside">Rollout ${line(id, 40)}</h1>
    <${TracePane} key=${id} id=${id} source=${`${runPath(name)}/traces`} />
  </div>`;
}
