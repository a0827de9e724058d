// A model's text as Markdown: tables, code in colours, mathematics. A model's own HTML is shown as text, an image as a link.
// Each block is drawn anew only when its text changes, so that an answer can be shown while it is written.
import { Component, createRef, html } from "./html.js";
import { Marked, Renderer } from "./vendor/marked/marked.esm.js";
import { maths } from "./markdown_maths.js";
import { sanitised } from "./sanitised.js";
import { Text, escaped, visible } from "./text.js";

// Characters. What is longer is shown plain. For each mark of emphasis the library reads its whole paragraph: `emphasis` is
// what it may read for all marks of a text together; the marks after that stay as they are.
const MOST = { text: 100_000, line: 5000, emphasis: 3_000_000, code: 15_000 };
const NESTED = /^(?:[ \t]*(?:>|[-*+](?=[ \t])|\d{1,9}[.)])){50}/m; // Fifty quotes and lists in one another.
const HARMLESS = /&#60;(\/?(?:b|br|em|i|kbd|strong|sub|sup))\s*\/?&#62;/gi;
const LIBRARIES = {
  code: [/```|~~~/, () => import("./vendor/highlight/highlight.min.js")],
  temml: [/\$|\\[([]/, () => import("./vendor/temml/temml.mjs")],
};

/** `text` formatted; with `plain`, and where it is too long or too deeply nested, as it was written. Never folded. */
export class Markdown extends Component {
  constructor(props) {
    super(props);
    this.loading = new Set();
    this.state = { libraries: {}, reader: reader({}) };
  }

  componentDidMount() {
    this.load();
  }

  componentDidUpdate() {
    this.load();
  }

  /** Loads the libraries that this text needs. */
  load() {
    for (const [name, [sign, library]] of Object.entries(LIBRARIES)) {
      if (this.props.plain || this.loading.has(name) || !sign.test(this.props.text ?? "")) continue;
      this.loading.add(name);
      library().then((module) => {
        const libraries = { ...this.state.libraries, [name]: module.default };
        this.setState({ libraries, reader: reader(libraries) });
      });
    }
  }

  render({ text, plain, quiet }, { reader }) {
    const blocks = plain || !text ? null : blocksOf(reader, text);
    if (!blocks) return html`<${Text} text=${text} fold=${Infinity} quiet=${quiet} />`;
    return html`<div class="markdown">
      ${blocks.map((token, at) => html`<${Block} key=${at} token=${token} reader=${reader} />`)}
    </div>`;
  }
}

/** The button that turns the formatted text into the plain one, and back. */
export function PlainSwitch({ plain, onChange }) {
  return html`<button type="button" class="quiet plain-switch" aria-pressed=${plain ? "true" : "false"} onClick=${() => onChange(!plain)}>
    plain text
  </button>`;
}

class Block extends Component {
  constructor(props) {
    super(props);
    this.box = createRef();
  }

  componentDidMount() {
    this.fill();
  }

  shouldComponentUpdate({ token, reader }) {
    return token.raw !== this.props.token.raw || reader !== this.props.reader;
  }

  componentDidUpdate() {
    this.fill();
  }

  fill() {
    const { token, reader } = this.props;
    this.box.current.replaceChildren(sanitised(reader.parser([token])));
  }

  render() {
    return html`<div dir="auto" ref=${this.box}></div>`;
  }
}

function blocksOf(reader, text) {
  if (text.length > MOST.text || NESTED.test(text) || text.split("\n").some((line) => line.length > MOST.line)) return null;
  try {
    return reader.lexer(visible(text)).filter(({ type }) => type !== "space" && type !== "def");
  } catch {
    return null; // The library gives up on very deep nesting.
  }
}

function reader({ code, temml }) {
  return new Marked({ tokenizer: { emStrong } }, maths(temml)).setOptions({ breaks: true, renderer: new SafeRenderer(code) });
}

/** Called by marked before each token; false: go on as usual. */
function emStrong(text, paragraph) {
  if (!/^[*_]/.test(text)) return false;
  const { lexer } = this; // A new one for each text.
  lexer.podiumEmphasis = (lexer.podiumEmphasis ?? 0) + paragraph.length;
  return lexer.podiumEmphasis > MOST.emphasis ? undefined : false;
}

class SafeRenderer extends Renderer {
  constructor(highlighter) {
    super();
    this.highlighter = highlighter;
  }

  html({ text, block }) {
    const shown = escaped(text.trim()).replace(HARMLESS, "<$1>");
    return block ? `<p>${shown.replaceAll("\n", "<br>")}</p>` : shown;
  }

  image({ href, text }) {
    return `<a href="${escaped(href)}">image: ${escaped(text || href)}</a>`;
  }

  heading({ tokens, depth }) {
    const level = Math.min(depth + 2, 6); // The page's own headings come first.
    return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>`;
  }

  checkbox({ checked }) {
    return checked ? "☑ " : "☐ ";
  }

  table(token) {
    return `<div class="scrolls">${super.table(token)}</div>`;
  }

  code({ text, lang }) {
    const language = lang?.match(/^[\w+#-]+/)?.[0];
    const known = text.length <= MOST.code && language && this.highlighter?.getLanguage(language);
    const inside = known ? this.highlighter.highlight(text, { language, ignoreIllegals: true }).value : escaped(text);
    return `<pre><code>${inside}</code></pre>`;
  }
}
