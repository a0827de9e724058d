// The latest iterations of a training run, newest first; a row opens one of the iteration's rollouts.
import { html } from "./html.js";
import { percent, short } from "./format.js";
import { to } from "./address.js";
import { definitionOf } from "./run_figures.js";
import { Heading } from "./term.js";

const MOST = 50;

export function Iterations({ name, rows }) {
  const latest = rows.filter((row) => typeof row.iteration === "number").slice(-MOST).reverse();
  if (!latest.length) return null;
  return html`<section class="iterations" aria-label="Iterations">
    <h2>Iterations</h2>
    <p class="note">
      The latest ${latest.length}, newest first.${latest.some((row) => row.trace_id) && " Each opens one of its rollouts as a trace."}
    </p>
    <div class="scrolls"><table>
      <thead>
        <tr>
          <${Heading} name="iteration" definition="One batch of questions, its rollouts, and the step of the optimiser that they give." />
          <${Heading} number name="reward" definition=${definitionOf("reward")} />
          <${Heading} number name="accuracy" definition=${definitionOf("accuracy")} />
          <${Heading} number name="valid plans" definition=${definitionOf("valid")} />
        </tr>
      </thead>
      <tbody>
        ${latest.map(
          (row) => html`<tr key=${row.iteration}>
            <th scope="row">
              ${row.trace_id ? html`<a href=${to(["runs", name], { trace: row.trace_id })}>iteration ${row.iteration}</a>` : `iteration ${row.iteration}`}
            </th>
            <td class="number">${short(row.reward)}</td>
            <td class="number">${percent(row.accuracy)}</td>
            <td class="number">${percent(row.valid)}</td>
          </tr>`,
        )}
      </tbody>
    </table></div>
  </section>`;
}
