// The budgets that the caller may see, and what each leaves in its period.
import { html } from "./html.js";
import { money, percent } from "./format.js";
import { Heading } from "./term.js";
import { line } from "./text.js";

const PERIODS = { day: "today (UTC)", month: "this month (UTC)", ever: "in all", run: "in all" };
const MEANING = {
  spent: "Dollars booked in this period, by every process that shares the budget.",
  reserved: "Dollars set aside for calls in flight: the most that each may cost. What a killed process had reserved stays so.",
  left: "The limit without what is spent and reserved. A call that could cost more is not made.",
};

export function Budgets({ budgets }) {
  return html`<section aria-label="Budgets">
    <h2>Budgets</h2>
    ${budgets.length
      ? html`<div class="scrolls"><table>
          <thead>
            <tr>
              <${Heading} name="of" />
              <${Heading} name="period" />
              <${Heading} number name="limit" />
              <${Heading} number name="spent" definition=${MEANING.spent} />
              <${Heading} number name="reserved" definition=${MEANING.reserved} />
              <${Heading} number name="left" definition=${MEANING.left} />
              <th></th>
            </tr>
          </thead>
          <tbody>
            ${budgets.map((budget) => html`<${Row} key=${budget.key ?? ""} budget=${budget} />`)}
          </tbody>
        </table></div>`
      : html`<p class="none">
          No budget is set. <code>podium serve --day-budget-usd 5</code> limits the server's day, and${" "}
          <code>podium keys add NAME --budget-usd 5/day</code> what one key may spend.
        </p>`}
  </section>`;
}

function Row({ budget: { key, period, limit_usd: limit, spent_usd: spent, reserved_usd: reserved, left_usd: left } }) {
  const used = limit ? Math.min(1, (spent + reserved) / limit) : 1;
  const of = key === null ? "this server's spend limit" : `key ${line(key, 60)}`;
  return html`<tr>
    <th scope="row">${of}</th>
    <td>${PERIODS[period] ?? period}</td>
    <td class="number">${money(limit)}</td>
    <td class="number">${money(spent)}</td>
    <td class="number">${money(reserved)}</td>
    <td class="number"><b>${money(left)}</b></td>
    <td class="used"><meter min="0" max="1" high="0.8" value=${used} aria-label=${`${of}: ${percent(used, 0)} used`}></meter></td>
  </tr>`;
}
