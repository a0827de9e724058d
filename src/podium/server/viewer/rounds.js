// The rounds of a question: plan, graph, waterfall, and the selected step.
import { Component, html } from "./html.js";
import { money, seconds } from "./format.js";
import { timing, tokensOf } from "./trace_stats.js";
import { PlainSwitch } from "./markdown.js";
import { PlanGraph } from "./plan_graph.js";
import { Planning } from "./planning.js";
import { StepDetail } from "./step_detail.js";
import { StepList } from "./step_list.js";
import { line, Text } from "./text.js";
import { Waterfall } from "./waterfall.js";

export class Rounds extends Component {
  constructor(props) {
    super(props);
    this.state = { chosen: null, plain: false };
    this.choose = (round) => (position) => this.setState({ chosen: position === null ? null : { round, position } });
    this.close = (event) => {
      if (event.key === "Escape" && this.state.chosen) {
        event.stopPropagation();
        this.setState({ chosen: null });
      }
    };
  }

  render({ view, names, nested }, { chosen, plain }) {
    const step = chosen && view.rounds[chosen.round]?.steps[chosen.position];
    const rounds = view.rounds.length ? view.rounds : [{ number: 0, plan: null, steps: [] }];
    return html`<div onKeyDown=${this.close}>
      <div class=${`rounds ${rounds.length > 1 ? "several" : ""}`}>
        ${rounds.map(
          (round) =>
            html`<${Round}
              key=${round.number}
              round=${round}
              running=${view.status === "running"}
              alone=${rounds.length === 1}
              names=${names}
              plain=${plain}
              onPlain=${(plain) => this.setState({ plain })}
              chosen=${chosen?.round === round.number ? chosen.position : null}
              onChoose=${this.choose(round.number)}
            />`,
        )}
      </div>
      ${step &&
      html`<${StepDetail}
        key=${`${chosen.round}/${chosen.position}`}
        step=${step}
        nested=${nested}
        onClose=${() => this.setState({ chosen: null })}
      />`}
    </div>`;
  }
}

function Round({ round, running, alone, names, plain, onPlain, chosen, onChoose }) {
  const { plan } = round;
  const accepted = plan?.decision.accept;
  const steps = round.steps.filter(Boolean);
  const times = timing(steps);
  return html`<section class="round" aria-label=${`Round ${round.number + 1}`}>
    <header>
      <h3>${alone ? "Plan" : `Round ${round.number + 1}`}</h3>
      <span class="figures">${plan ? planFigures(plan) : running ? "planning …" : "no plan"}</span>
    </header>
    ${accepted && html`<p class="note">The planner accepted the answer of the round before.</p>`}
    ${plan?.dropped.length > 0 &&
    html`<p class="note">The planner's endpoint refuses: ${plan.dropped.join(", ")}.</p>`}
    ${plan?.reason && html`<p class="note">${line(plan.reason, 400)}</p>`}
    <div class="both">
      <div class="picture">
        ${(round.steps.length > 0 || (running && !accepted)) &&
        html`<${PlanGraph}
          steps=${round.steps}
          names=${names}
          path=${round.steps.length > 1 ? times.path : null}
          chosen=${chosen}
          onChoose=${onChoose}
          label=${`Steps of round ${round.number + 1}`}
        />`}
        <${Waterfall} steps=${steps} timing=${times} names=${names} chosen=${chosen} onChoose=${onChoose} />
        ${plan && html`<${Planning} plan=${plan} steps=${round.steps} abandoned=${round.abandoned} />`}
      </div>
      ${steps.length > 0 &&
      html`<div>
        <h3 class="steps-title">Steps <${PlainSwitch} plain=${plain} onChange=${onPlain} /></h3>
        <${StepList} steps=${steps} names=${names} plain=${plain} chosen=${chosen} onChoose=${onChoose} label=${`Round ${round.number + 1}, step by step`} />
      </div>`}
    </div>
    ${!alone &&
    round.response != null &&
    html`<details class="plan-text" open><summary>Its answer</summary><${Text} text=${round.response} fold=${800} /></details>`}
  </section>`;
}

function planFigures({ spent, seconds: took, edited, attempts }) {
  const used = tokensOf(spent.usage);
  return [
    `planned in ${seconds(took)}`,
    used ? `${used} tokens` : null,
    spent.cost_usd ? money(spent.cost_usd) : null,
    spent.unpriced ? "unpriced" : null,
    attempts?.some((attempt) => attempt.error_kind) ? `${attempts.length} attempt${attempts.length > 1 ? "s" : ""}` : null,
    edited ? "edited by the user" : null,
  ]
    .filter(Boolean)
    .join(" · ");
}
