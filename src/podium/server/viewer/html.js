// The template tag and what components are made of. Everything that is shown goes through it, as text.
import { Component, Fragment, createRef, h, render } from "./vendor/preact/preact.mjs";
import htm from "./vendor/htm/htm.module.js";

export const html = htm.bind(h);
export { Component, Fragment, createRef, render };
