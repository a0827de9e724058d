// The address of a page: the part after "#", so that a link to a page can be shared.

/** {parts: ["traces", "3f2a"], query: URLSearchParams} of the address that is open. */
export function here() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { parts: path.split("/").filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

export function to(parts, query = {}) {
  const kept = Object.entries(query).filter(([, value]) => value !== "" && value != null);
  const said = new URLSearchParams(kept).toString();
  return "#/" + parts.map(encodeURIComponent).join("/") + (said && "?" + said);
}

export function go(parts, query) {
  location.hash = to(parts, query);
}

/** Change the address without a new entry in the history. */
export function amend(parts, query) {
  history.replaceState(null, "", to(parts, query));
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
