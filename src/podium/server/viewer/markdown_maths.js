// TeX within Markdown, as an extension of marked: $...$, \(...\), $$...$$ and \[...\] become MathML.
// A dollar is a sign of money where a space follows it, or a digit follows its partner, as in "$5 or $10".
import { escaped } from "./text.js";

// The lengths keep a text of nothing but dollars from being read for minutes.
const INLINE = /^(?:\$(?![\s$])((?:\\.|[^\\$\n]){1,2000}?)(?<!\s)\$(?!\d)|\\\((.{1,2000}?)\\\))/s;
const WITHIN = /^(?:\$\$(.{1,2000}?)\$\$|\\\[(.{1,2000}?)\\\])/s;
const BLOCK = /^ {0,3}(?:\$\$(.{1,5000}?)\$\$|\\\[(.{1,5000}?)\\\])[ \t]*(?:\n+|$)/s;
// What a text has beyond so many characters of TeX is shown as it was written.
const MOST_TEX = 20_000;
// marked asks after each mark where the next formula may begin. Reading to the end of the text each time took seconds.
const AHEAD = 200;
const LIMITS = { throwOnError: true, trust: false, maxExpand: 500, maxSize: [20, 500] };

/** `temml` is null until it is loaded; the TeX is shown until then, and where it cannot be read. */
export function maths(temml) {
  return {
    extensions: [
      {
        name: "mathsBlock",
        level: "block",
        tokenizer(text) {
          return found(this.lexer, "mathsBlock", BLOCK.exec(text), true);
        },
        renderer: ({ raw, tex }) => `<p>${written(temml, raw, tex, true)}</p>`,
      },
      {
        name: "mathsInline",
        level: "inline",
        start: nextFormula,
        tokenizer(text) {
          const { lexer } = this; // A new one for each text.
          return found(lexer, "mathsInline", WITHIN.exec(text), true) ?? found(lexer, "mathsInline", INLINE.exec(text), false);
        },
        renderer: ({ raw, tex, display }) => written(temml, raw, tex, display),
      },
    ],
  };
}

/** Where a formula may begin in `text`, or where to ask again. */
function nextFormula(text) {
  const at = text.slice(0, AHEAD).search(/\$|\\[([]/);
  if (at >= 0) return at;
  return text.length > AHEAD ? AHEAD : undefined;
}

function found(lexer, type, match, display) {
  const tex = match && (match[1] ?? match[2]).trim();
  const read = (lexer.podiumTex ?? 0) + (tex?.length ?? 0);
  if (!tex || read > MOST_TEX) return undefined;
  lexer.podiumTex = read;
  return { type, raw: match[0], tex, display };
}

function written(temml, raw, tex, displayMode) {
  try {
    if (temml) return plain(temml.renderToString(tex, { ...LIMITS, displayMode }));
  } catch {
    // What the library cannot read is shown as it was written.
  }
  return `<code>${escaped(raw.trim())}</code>`;
}

/** Without inline styles, which the page's policy forbids. The frame of \boxed gets a class. */
function plain(mathml) {
  return mathml.replace(/ style="([^"]*)"/g, (_, style) => (/border:1px solid/.test(style) ? ' class="boxed"' : ""));
}
