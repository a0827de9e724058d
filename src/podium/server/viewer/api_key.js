// The API key of this browser tab. Kept in sessionStorage, sent as a header, never in an address.

const PLACE = "podium-key";
let asking = null;
const listeners = new Set();

export function headers() {
  const key = read();
  return key ? { Authorization: `Bearer ${key}` } : {};
}

/** Ask the user for a key, once for all waiting requests. Resolves with the key, rejects if there is none. */
export function want(message) {
  if (asking === null) {
    let settle;
    const promise = new Promise((resolve, reject) => (settle = { resolve, reject }));
    asking = { promise, settle, message };
    tell();
  }
  return asking.promise;
}

export function give(key) {
  try {
    sessionStorage.setItem(PLACE, key);
  } catch {
    held = key;
  }
  end((settle) => settle.resolve());
}

export function refuse() {
  end((settle) => settle.reject(new Error("A key is needed to see this.")));
}

export function onAsking(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

let held = null; // for browsers without storage

function read() {
  try {
    return sessionStorage.getItem(PLACE) ?? held;
  } catch {
    return held;
  }
}

function end(how) {
  const ended = asking;
  asking = null;
  tell();
  if (ended) how(ended.settle);
}

function tell() {
  for (const listener of listeners) listener(asking && asking.message);
}
