// A comparison: its questions, accuracy against cost, and each method's figures with intervals; of one run or of two.
import { html } from "./html.js";
import { count, money, percent, plural, seconds, short } from "./format.js";
import { Frontier } from "./frontier.js";
import { setAndSplit } from "./run_facts.js";
import { Fact, Heading } from "./term.js";
import { line } from "./text.js";

const MEANING = {
  method: "What writes the plans: the Conductor or a baseline. All get the same questions and the same workers.",
  accuracy: "Share of the questions whose answer is right.",
  interval: "The 95% interval of the accuracy over questions (Wilson): another draw of as many questions would give an accuracy within it in 19 of 20 cases.",
  cost: "Dollars of workers and plans for 1,000 questions. A cached answer counts with what it cost when it was made.",
  steps: "Steps of a plan, as a mean over questions.",
  calls: "Calls of workers for a question, with retries and fallbacks.",
  time: "Seconds along the slowest chain of steps, without waiting for limits; a mean over questions.",
  valid: "Share of the plans that can be read and name only workers and steps that exist.",
  questions: "How many questions every method answered.",
  set: "The task set, file or recording whose questions these are.",
  split: "The part of the task set. Splits share no question.",
  seed: "Which questions were drawn, and the randomness of every method.",
};

export function Comparison({ comparison, questions }) {
  return html`<section aria-label="Comparison">
    <h2>Compared on ${plural(comparison.questions, "question")}</h2>
    <${Questions} comparison=${comparison} questions=${questions} />
    <${Origin} comparison=${comparison} />
    <${Frontier} rows=${comparison.rows} />
    <div class="scrolls"><table>
      <thead>
        <tr>
          <${Heading} name="method" definition=${MEANING.method} />
          <${Heading} number name="accuracy" definition=${MEANING.accuracy} />
          <${Heading} number name="95% interval" definition=${MEANING.interval} />
          <${Heading} number name="cost for 1,000" definition=${MEANING.cost} />
          <${Heading} number name="steps" definition=${MEANING.steps} />
          <${Heading} number name="calls" definition=${MEANING.calls} />
          <${Heading} number name="time" definition=${MEANING.time} />
          <${Heading} number name="valid plans" definition=${MEANING.valid} />
        </tr>
      </thead>
      <tbody>
        ${comparison.rows.map(
          (row) => html`<tr>
            <th scope="row">${line(row.label, 60)}</th>
            <td class="number">${percent(row.accuracy.mean)}</td>
            <td class="number">${interval(row)}</td>
            <td class="number">${costOf1000(row)}</td>
            <td class="number">${short(row.steps)}</td>
            <td class="number">${short(row.calls)}</td>
            <td class="number">${comparison.recorded ? "–" : seconds(row.latency_s)}</td>
            <td class="number">${percent(row.validity)}</td>
          </tr>`,
        )}
      </tbody>
    </table></div>
  </section>`;
}

function Questions({ comparison: { questions: n, seed }, questions }) {
  const [set, split] = setAndSplit(questions);
  return html`<dl class="facts">
    <${Fact} name="task set" definition=${MEANING.set}>${set}<//>
    <${Fact} name="split" definition=${MEANING.split}>${split}<//>
    <${Fact} name="questions" definition=${MEANING.questions}>${count(n)}<//>
    <${Fact} name="seed" definition=${MEANING.seed}>${line(seed ?? "–", 20)}<//>
  </dl>`;
}

function Origin({ comparison }) {
  return html`${comparison.recorded && html`<p class="note">Recorded responses: times are not known.</p>`}`;
}

/** Two comparisons beside each other, a row for each method that either has. `runs`: {label, comparison, questions}. */
export function TwoComparisons({ runs }) {
  const labels = [...new Set(runs.flatMap(({ comparison }) => (comparison?.rows ?? []).map((row) => row.label)))];
  const [one, other] = runs.map((run) => run.comparison && JSON.stringify([setAndSplit(run.questions), run.comparison.questions, run.comparison.seed]));
  return html`<section aria-label="Comparisons">
    <h2>Comparisons</h2>
    <div class="pair">
      ${runs.map(
        ({ label, comparison, questions }) => html`<div>
          <h3>${label}</h3>
          ${comparison ? html`<${Questions} comparison=${comparison} questions=${questions} /><${Origin} comparison=${comparison} />` : html`<p class="none">It has no comparison. <code>podium eval --run</code> makes one.</p>`}
        </div>`,
      )}
    </div>
    ${one &&
    other &&
    html`<p class="note">
      ${one === other
        ? "Task set, split, number of questions and seed are the same. The intervals are of each run alone; a suite of podium eval with both Conductors tests them in pairs."
        : "The two runs were compared on different questions, so a difference may come from the questions."}
    </p>`}
    <div class="scrolls"><table aria-label="Methods of both runs">
      <thead>
        <tr>
          <th></th>
          ${runs.map(({ label }) => html`<th colspan="2" scope="colgroup" class="number">${label}</th>`)}
        </tr>
        <tr>
          <${Heading} name="method" definition=${MEANING.method} />
          ${runs.map(
            () => html`<${Heading} number name="accuracy (95% interval)" definition=${`${MEANING.accuracy} ${MEANING.interval}`} />
              <${Heading} number name="cost for 1,000" definition=${MEANING.cost} />`,
          )}
        </tr>
      </thead>
      <tbody>
        ${labels.map(
          (label) => html`<tr key=${label}>
            <th scope="row">${line(label, 60)}</th>
            ${runs.map(({ comparison }) => {
              const row = comparison?.rows.find((row) => row.label === label);
              return html`<td class="number">${row ? `${percent(row.accuracy.mean)} (${interval(row)})` : "–"}</td>
                <td class="number">${row ? costOf1000(row) : "–"}</td>`;
            })}
          </tr>`,
        )}
      </tbody>
    </table></div>
  </section>`;
}

/** Dollars for 1,000 questions; a cost that has no bound comes as null. */
function costOf1000({ cost_usd: usd }) {
  return money(usd == null ? null : 1000 * usd);
}

function interval({ accuracy: { low, high } }) {
  return `${percent(low)} to ${percent(high)}`;
}
