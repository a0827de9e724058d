// What could not be had, said where it would have been.
import { html } from "./html.js";
import { line } from "./text.js";

export function Trouble({ error }) {
  return html`<p class="trouble" role="alert">${line(error.message ?? error, 2000)}</p>`;
}
