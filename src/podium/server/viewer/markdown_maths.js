// TeX within Markdown, as an extension of marked: $...$, \(...\), $$...$$ and \[...\] become MathML.
// A dollar is a sign of money where a space follows it, or a digit follows its partner, as in "$5 or $10".
import { escaped } from "./text.js";

// The lengths keep a text of nothing but dollars from being read for minutes.
const INLINE = /^(?:\$(?![\s$])((?:\\.|[^\\$\n]){1,2000}?)(?<!\s)\$(?!\d)|\\\((.{1,2000}?)\\\))/s;
const WITHIN = /^(?:\$\$(.{1,2000}?)\$\$|\\\[(.{1,2000}?)\\\])/s;
const BLOCK = /^ {0,3}(?:\$\$(.{1,5000}?)\$\$|\\\[(.{1,5000}?)\\\])[ \t]*(?:\n+|$)/s;
const LIMITS = { throwOnError: true, trust: false, maxExpand: 500, maxSize: [20, 500] };

/** `temml` is null until it is loaded; the TeX is shown until then, and where it cannot be read. */
export function maths(temml) {
  return {
    extensions: [
      {
        name: "mathsBlock",
        level: "block",
        tokenizer: (text) => found("mathsBlock", BLOCK.exec(text), true),
        renderer: ({ raw, tex }) => `<p>${written(temml, raw, tex, true)}</p>`,
      },
      {
        name: "mathsInline",
        level: "inline",
        start: (text) => text.match(/\$|\\[([]/)?.index,
        tokenizer: (text) => found("mathsInline", WITHIN.exec(text), true) ?? found("mathsInline", INLINE.exec(text), false),
        renderer: ({ raw, tex, display }) => written(temml, raw, tex, display),
      },
    ],
  };
}

function found(type, match, display) {
  const tex = match && (match[1] ?? match[2]).trim();
  return tex ? { type, raw: match[0], tex, display } : undefined;
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
