// The frame around the pages, and which page an address opens.
import { Component, html, render } from "./html.js";
import { KeyDialog } from "./key_dialog.js";
import { AskPage } from "./pages/ask.js";
import { ChatPage } from "./pages/chat.js";
import { ComparePage } from "./pages/compare.js";
import { PoolPage } from "./pages/pool.js";
import { RunPage } from "./pages/run.js";
import { RunPairPage } from "./pages/run_pair.js";
import { RunTracePage } from "./pages/run_trace.js";
import { RunsPage } from "./pages/runs.js";
import { SpendPage } from "./pages/spend.js";
import { TracePage } from "./pages/trace.js";
import { TracesPage } from "./pages/traces.js";
import { here, to } from "./address.js";
import { ThemeSwitch } from "./theme_switch.js";
import { ErrorNote } from "./text.js";

const PAGES = [
  ["ask", "Ask"],
  ["chat", "Chat"],
  ["traces", "Traces"],
  ["runs", "Runs"],
  ["spend", "Spend"],
  ["pool", "Pool"],
];

class App extends Component {
  constructor(props) {
    super(props);
    this.state = { route: here(), visit: 0, fault: null };
  }

  componentDidMount() {
    addEventListener("hashchange", () => {
      this.setState(({ visit }) => ({ route: here(), visit: visit + 1, fault: null }));
      scrollTo(0, 0);
    });
  }

  componentDidCatch(fault) {
    console.error(fault);
    this.setState({ fault });
  }

  render(_, { route, visit, fault }) {
    const { parts, query } = route;
    const [first = "ask"] = parts;
    const current = first === "compare" ? "traces" : first;
    const name = PAGES.find(([path]) => path === current)?.[1];
    document.title = name && name !== "Ask" ? `${name} · Podium` : "Podium";
    return html`<a class="skip" href="#main" onClick=${skip}>Skip to the page</a>
      <header class="top">
        <a class="brand" href=${to(["ask"])}>Podium</a>
        <nav aria-label="Pages">
          ${PAGES.map(([path, label]) => html`<a href=${to([path])} aria-current=${path === current ? "page" : null}>${label}</a>`)}
        </nav>
        <${ThemeSwitch} />
      </header>
      <main id="main" tabindex="-1">
        ${fault
          ? html`<${ErrorNote} error=${new Error(`The page could not be drawn: ${fault.message}`)} />`
          : html`<${Page} first=${first} rest=${parts.slice(1)} query=${query} visit=${visit} />`}
      </main>
      <${KeyDialog} />`;
  }
}

// Pages that read the query once have the visit as key: a page may amend its address, so the query would not do.
function Page({ first, rest, query, visit }) {
  if (first === "ask") return html`<${AskPage} key=${visit} query=${query} />`;
  if (first === "chat") return html`<${ChatPage} id=${rest[0]} />`;
  if (first === "traces" && rest.length === 1) return html`<${TracePage} key=${rest[0]} id=${rest[0]} />`;
  if (first === "traces") return html`<${TracesPage} key=${visit} query=${query} />`;
  if (first === "compare" && rest.length === 2) return html`<${ComparePage} key=${rest.join()} ids=${rest} />`;
  if (first === "runs" && rest.length && query.get("trace")) {
    return html`<${RunTracePage} name=${rest.join("/")} id=${query.get("trace")} />`;
  }
  const vs = rest.indexOf("vs");
  if (first === "runs" && vs > 0 && vs < rest.length - 1) {
    const names = [rest.slice(0, vs), rest.slice(vs + 1)].map((parts) => parts.join("/"));
    return html`<${RunPairPage} key=${names.join(" ")} names=${names} />`;
  }
  if (first === "runs" && rest.length) return html`<${RunPage} key=${rest.join("/")} name=${rest.join("/")} />`;
  if (first === "runs") return html`<${RunsPage} />`;
  if (first === "spend") return html`<${SpendPage} key=${visit} query=${query} />`;
  if (first === "pool") return html`<${PoolPage} />`;
  return html`<p class="none">There is no such page. <a href=${to(["ask"])}>Ask a question</a> instead.</p>`;
}

/** The address after "#" names the page, so the link moves the focus itself. */
function skip(event) {
  event.preventDefault();
  document.getElementById("main").focus();
}

render(html`<${App} />`, document.getElementById("app"));
