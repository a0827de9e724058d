// HTML that was made of a model's text becomes elements here, and nowhere else. DOMPurify removes what is not named below.
// Its Trusted Types policy, "dompurify", is the only one that the server's Content-Security-Policy allows.
import DOMPurify from "./vendor/dompurify/purify.es.mjs";
import { visible } from "./text.js";

const TEXT = "a b blockquote br code del div em h3 h4 h5 h6 hr i kbd li ol p pre span strong sub sup table tbody td th thead tr ul";
const MATHS =
  "math menclose merror mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow ms mspace msqrt mstyle " +
  "msub msubsup msup mtable mtd mtext mtr munder munderover";
const PLAIN_ATTRIBUTES =
  "accent accentunder align class colspan columnalign depth display displaystyle fence form height largeop linethickness lspace " +
  "mathvariant maxsize minsize movablelimits notation rowspan rspace scriptlevel separator start stretchy symmetric voffset width";
const SETTINGS = {
  ALLOWED_TAGS: `#text ${TEXT} ${MATHS}`.split(" "),
  ALLOWED_ATTR: ["href", ...PLAIN_ATTRIBUTES.split(" ")],
  ADD_URI_SAFE_ATTR: PLAIN_ATTRIBUTES.split(" "),
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  ALLOW_ARIA_ATTR: false,
  ALLOW_DATA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};
const OPERATORS = /⟨U\+206[1-4]⟩/g; // MathML's invisible operators, such as "apply the function".

/** A fragment for the page. Links open in a new tab; characters that an entity or TeX had hidden are made visible. */
export function sanitised(html) {
  const fragment = DOMPurify.sanitize(html, SETTINGS);
  for (const link of fragment.querySelectorAll("a[href]")) {
    Object.assign(link, { target: "_blank", rel: "noopener noreferrer", title: visible(link.href) });
  }
  const texts = document.createTreeWalker(fragment, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const { currentNode: node } = texts;
    const shown = visible(node.data);
    const inMaths = node.parentElement?.closest("math");
    if (shown !== node.data) node.data = inMaths ? shown.replace(OPERATORS, "") : shown;
  }
  return fragment;
}
