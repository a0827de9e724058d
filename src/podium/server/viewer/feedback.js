// Buttons that say whether an answer was right, and a note. The trace keeps both.
import { Component, html } from "./html.js";
import { requestJson } from "./api.js";
import { ErrorNote, visible } from "./text.js";

const VERDICTS = [
  [true, "✓", "right"],
  [false, "✕", "wrong"],
];

// The same function at every render: Preact calls a new one again, which would take the focus from another field.
const focus = (box) => box?.focus();

export class Feedback extends Component {
  constructor(props) {
    super(props);
    const { right = null, note = "" } = props.outcome ?? {};
    this.state = { right, note, draft: note, open: false, error: null };
  }

  async say(right, note) {
    try {
      const body = { right, note };
      const { outcome } = await requestJson(`/api/traces/${this.props.id}/outcome`, { method: "POST", body });
      const said = { right: outcome?.right ?? null, note: outcome?.note ?? "" };
      this.setState({ ...said, draft: said.note, open: false, error: null });
      this.props.onChange?.(outcome);
    } catch (error) {
      this.setState({ error });
    }
  }

  render(_, { right, note, draft, open, error }) {
    return html`<div class="feedback" role="group" aria-label="Was the answer right?">
      ${VERDICTS.map(
        ([value, sign, word]) => html`<button
          key=${word}
          class=${`quiet ${word}`}
          aria-pressed=${right === value ? "true" : "false"}
          onClick=${() => this.say(right === value ? null : value, note)}
        >
          <span aria-hidden="true">${sign}</span> ${word}
        </button>`,
      )}
      <button class="quiet" aria-expanded=${open} onClick=${() => this.setState({ open: !open, draft: note })}>
        ${note ? "change the note" : "add a note"}
      </button>
      ${note && !open && html`<p class="note said">${visible(note)}</p>`}
      ${open &&
      html`<form onSubmit=${(event) => (event.preventDefault(), this.say(right, draft))}>
        <input
          aria-label="Note"
          maxlength="4000"
          placeholder="What was right or wrong?"
          value=${draft}
          ref=${focus}
          onInput=${(event) => this.setState({ draft: event.currentTarget.value })}
          onKeyDown=${(event) => event.key === "Escape" && (event.stopPropagation(), this.setState({ open: false }))}
        />
        <button class="second">Save</button>
      </form>`}
      ${error && html`<${ErrorNote} error=${error} />`}
    </div>`;
  }
}
