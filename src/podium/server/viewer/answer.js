// The answer of a question, whole: formatted, or as it was written.
import { Component, html } from "./html.js";
import { Markdown, PlainSwitch } from "./markdown.js";
import { line } from "./text.js";

export class Answer extends Component {
  constructor(props) {
    super(props);
    this.state = { plain: false };
  }

  render({ view, steady }, { plain }) {
    const { answer, error } = view;
    return html`<h3>Answer <${PlainSwitch} plain=${plain} onChange=${(plain) => this.setState({ plain })} /></h3>
      <div class="answer" tabindex=${steady ? 0 : null} role="group" aria-label="Answer" aria-live="polite" aria-atomic="false">
        ${answer == null
          ? html`<p class="none">${none(view)}</p>`
          : html`<${Markdown} text=${answer} plain=${plain} quiet="an empty answer" />`}
        ${error && html`<p class="trouble">${line(error, 2000)}</p>`}
      </div>`;
  }
}

function none({ status, rounds }) {
  if (status !== "running") return "There is no answer.";
  return rounds[0]?.plan ? "The team is at work …" : "Planning …";
}
