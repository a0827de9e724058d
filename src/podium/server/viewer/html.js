// The template tag and the parts of components. Everything on a page passes through the tag, as text.
import { Component, Fragment, createRef, h, render } from "./vendor/preact/preact.mjs";
import htm from "./vendor/htm/htm.module.js";

export const html = htm.bind(h);
export { Component, Fragment, createRef, render };
