// The dialog that asks for the API key when the server requires one.
import { Component, createRef, html } from "./html.js";
import * as key from "./api_key.js";
import { line } from "./text.js";

const FOREIGN = /[^\x21-\x7e]/; // A header cannot carry most of these, and no key has any.

export class KeyDialog extends Component {
  constructor(props) {
    super(props);
    this.dialog = createRef();
    this.state = { message: null };
  }

  componentDidMount() {
    this.stop = key.onAsking((message) => {
      this.setState({ message });
      if (message) this.dialog.current.showModal();
      else this.dialog.current.close();
    });
  }

  componentWillUnmount() {
    this.stop();
  }

  render(_, { message }) {
    const submit = (event) => {
      event.preventDefault();
      const field = event.currentTarget.elements.key;
      const given = field.value.trim();
      if (FOREIGN.test(given)) this.setState({ message: "This is not a whole key: it has a character that no key has. Copy it again." });
      else if (given) key.give(given);
      field.value = "";
    };
    return html`<dialog ref=${this.dialog} aria-labelledby="key-title" onCancel=${key.refuse}>
      <form onSubmit=${submit}>
        <h2 id="key-title">This server needs a key</h2>
        <p>${line(message ?? "", 300)}</p>
        <label for="key">Key</label>
        <input id="key" name="key" type="password" autocomplete="off" spellcheck=${false} required />
        <p class="none">It is kept in this tab alone, until the tab is closed.</p>
        <div class="row">
          <button type="button" class="quiet" onClick=${key.refuse}>Not now</button>
          <button class="first">Go on</button>
        </div>
      </form>
    </dialog>`;
  }
}
