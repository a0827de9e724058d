// Dark, light, or as the system has it; remembered.
import { Component, html } from "./html.js";

const PLACE = "podium-theme";
const DARK = matchMedia("(prefers-color-scheme: dark)");

export class ThemeSwitch extends Component {
  constructor(props) {
    super(props);
    this.state = { dark: isDark() };
    this.tell = () => {
      this.setState({ dark: isDark() });
      document.dispatchEvent(new Event("themechange"));
    };
  }

  componentDidMount() {
    DARK.addEventListener("change", this.tell);
  }

  componentWillUnmount() {
    DARK.removeEventListener("change", this.tell);
  }

  turn() {
    const chosen = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = chosen;
    try {
      if ((chosen === "dark") === DARK.matches) localStorage.removeItem(PLACE);
      else localStorage.setItem(PLACE, chosen);
    } catch {
      // It holds for this page.
    }
    this.tell();
  }

  render(_, { dark }) {
    return html`<button class="quiet theme" aria-label=${dark ? "Light colours" : "Dark colours"} onClick=${() => this.turn()}>
      ${dark ? "light" : "dark"}
    </button>`;
  }
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : DARK.matches;
}
