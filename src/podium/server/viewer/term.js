// A figure's name whose definition appears under the pointer, at keyboard focus, and at a tap.
import { Component, html } from "./html.js";

const WIDE = 320;
const TALL = 130;
let made = 0;

export class Term extends Component {
  constructor(props) {
    super(props);
    this.id = `term-${++made}`;
    this.state = { position: null };
    this.hide = () => {
      removeEventListener("scroll", this.move, { capture: true });
      this.setState({ position: null });
    };
    this.show = (event) => {
      this.named = event.currentTarget;
      addEventListener("scroll", this.move, { capture: true }); // Focus scrolls what was out of sight.
      this.move();
    };
    this.move = () => {
      const { left, top, bottom } = this.named.getBoundingClientRect();
      const x = Math.max(8, Math.min(left, innerWidth - WIDE - 8));
      const below = bottom + TALL < innerHeight;
      this.setState({ position: { left: `${x}px`, ...(below ? { top: `${bottom + 6}px` } : { bottom: `${innerHeight - top + 6}px` }) } });
    };
  }

  componentWillUnmount() {
    removeEventListener("scroll", this.move, { capture: true });
  }

  render({ definition, children }, { position }) {
    if (!definition) return children;
    return html`<span
      class="term"
      tabindex="0"
      aria-describedby=${this.id}
      onMouseEnter=${this.show}
      onMouseLeave=${this.hide}
      onFocus=${this.show}
      onBlur=${this.hide}
      onKeyDown=${(event) => event.key === "Escape" && this.hide()}
      >${children}<span role="tooltip" id=${this.id} class="tip" hidden=${!position} style=${position ?? {}}>${definition}</span></span
    >`;
  }
}

/** The heading of a table's column. */
export function Heading({ name, definition, number }) {
  return html`<th scope="col" class=${number ? "number" : null}><${Term} definition=${definition}>${name}<//></th>`;
}

/** A figure with its name, in a list of facts. */
export function Fact({ name, definition, children }) {
  return html`<div>
    <dt><${Term} definition=${definition}>${name}<//></dt>
    <dd>${children}</dd>
  </div>`;
}
