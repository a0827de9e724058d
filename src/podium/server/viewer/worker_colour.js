// A worker's colour, by its name. Workers that are drawn together have different colours, up to nine of them.
const HUES = 9;
const STRIDE = 4; // The colour after one that is taken: no neighbour of it.

/** The colour as CSS writes it. */
export function colour(name, names) {
  return `var(--hue-${hueOf(name, names)})`;
}

/** `names` are the workers of the pool, in any order; a pool gives each of its workers the same hue on every page. */
export function hueOf(name, names) {
  const taken = new Map();
  for (const each of [...new Set(names)].sort()) {
    let hue = preferred(each);
    while (taken.size < HUES && [...taken.values()].includes(hue)) hue = (hue + STRIDE) % HUES;
    taken.set(each, hue);
  }
  return taken.get(name) ?? preferred(name);
}

function preferred(name) {
  let sum = 0;
  for (const character of name) sum = (sum * 31 + character.codePointAt(0)) % 1_000_003;
  return sum % HUES;
}
