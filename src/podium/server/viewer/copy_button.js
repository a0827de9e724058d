// A button that copies a text, and says for a moment that it did.
import { Component, html } from "./html.js";

const SAID_MS = 1500;

export class CopyButton extends Component {
  async copy() {
    try {
      await navigator.clipboard.writeText(this.props.text);
      this.setState({ copied: true });
      setTimeout(() => this.setState({ copied: false }), SAID_MS);
    } catch {
      this.props.onRefused();
    }
  }

  render({ label }, { copied }) {
    return html`<button class="quiet" onClick=${() => this.copy()}>${copied ? "copied" : label}</button>`;
  }
}
