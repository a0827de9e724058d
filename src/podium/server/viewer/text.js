// Untrusted texts: drawn as text and never as HTML, with invisible characters made visible and long ones folded.
import { Component, html } from "./html.js";
import { characters } from "./format.js";

const FOLD = 4000;
const BLOCK = 32768;
// Controls other than tab and line feed, marks that turn the direction of writing, and spaces without width.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

export function visible(text) {
  return text.replace(/\r\n/g, "\n").replace(HIDDEN, (character) => {
    const code = character.codePointAt(0);
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    return code === 0x7f ? "\u2421" : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

/** The text for HTML, as text. */
export function escaped(text) {
  return text.replace(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`);
}

/** One line of at most `length` characters. */
export function line(text, length = 120) {
  const start = visible(String(text ?? "").slice(0, 4 * length).replace(/\s+/g, " ").trim());
  return start.length > length ? start.slice(0, length - 1) + "…" : start;
}

export class Text extends Component {
  constructor(props) {
    super(props);
    this.state = { whole: false };
  }

  render({ text, fold = FOLD, quiet }, { whole }) {
    if (text == null || text === "") return html`<p class="none">${quiet ?? "empty"}</p>`;
    const long = text.length > fold;
    const shown = visible(long && !whole ? text.slice(0, fold) : text);
    return html`<div class="text" dir="auto">
      ${blocks(shown).map((block) => html`<pre>${fenced(block)}</pre>`)}
      ${long &&
      html`<button class="link" aria-expanded=${whole} onClick=${() => this.setState({ whole: !whole })}>
        ${whole ? "show less" : `show all ${characters(text.length)}`}
      </button>`}
    </div>`;
  }
}

/** Pieces that the browser lays out one by one; a million characters in one element would block the page. */
function blocks(text) {
  if (text.length <= BLOCK) return [text];
  const found = [];
  for (let at = 0; at < text.length; ) {
    const line = text.indexOf("\n", at + BLOCK);
    const end = line < 0 || line > at + 2 * BLOCK ? Math.min(text.length, at + BLOCK) : line + 1;
    found.push(text.slice(at, end));
    at = end;
  }
  return found;
}

/** The fences between workers' texts, set apart. */
function fenced(block) {
  if (!block.includes("<<<")) return block;
  return block
    .split(/^(<<<[^\n]{1,200}>>>)$/m)
    .map((part, i) => (i % 2 ? html`<span class="fence">${part}</span>` : part));
}

/** An error, shown in place of what could not be loaded. */
export function ErrorNote({ error }) {
  return html`<p class="trouble" role="alert">${line(error.message ?? error, 2000)}</p>`;
}
