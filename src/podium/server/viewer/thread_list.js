// The list of threads beside the chat: open, rename, delete, begin a new one.
import { Component, html } from "./html.js";
import { to } from "./address.js";
import { line } from "./text.js";

const NARROW = matchMedia("(max-width: 700px)");

export class ThreadList extends Component {
  constructor(props) {
    super(props);
    this.state = { renaming: null, sure: null };
  }

  remove(id) {
    clearTimeout(this.unsure);
    if (this.state.sure === id) return this.props.onRemove(id);
    this.setState({ sure: id });
    this.unsure = setTimeout(() => this.setState({ sure: null }), 4000);
  }

  rename(id, name) {
    if (this.state.renaming !== id) return;
    this.setState({ renaming: null });
    if (name.trim()) this.props.onRename(id, name.trim());
  }

  render({ threads, current }, { renaming, sure }) {
    return html`<details class="threads" open=${!NARROW.matches}>
      <summary>Threads (${threads.length})</summary>
      <a class="new-thread" href=${to(["chat"])} aria-current=${current ? null : "page"}>New thread</a>
      <ul aria-label="Threads">
        ${threads.map(({ id, name }) =>
          renaming === id
            ? html`<li key=${id}>
                <input
                  aria-label="Name of the thread"
                  maxlength="100"
                  value=${name}
                  ref=${(box) => box && box !== this.box && ((this.box = box), box.select())}
                  onBlur=${(event) => this.rename(id, event.currentTarget.value)}
                  onKeyDown=${(event) => {
                    if (event.key === "Enter") this.rename(id, event.currentTarget.value);
                    if (event.key === "Escape") (event.stopPropagation(), this.setState({ renaming: null }));
                  }}
                />
              </li>`
            : html`<li key=${id}>
                <a href=${to(["chat", id])} aria-current=${id === current ? "page" : null}>${line(name, 60)}</a>
                <button class="quiet" aria-label=${`Rename ${line(name, 60)}`} onClick=${() => this.setState({ renaming: id })}>rename</button>
                <button class="quiet danger" aria-label=${`Delete ${line(name, 60)}`} onClick=${() => this.remove(id)}>
                  ${sure === id ? "sure?" : "delete"}
                </button>
              </li>`,
        )}
      </ul>
      <p class="none">Threads are kept in this browser.</p>
    </details>`;
  }
}
