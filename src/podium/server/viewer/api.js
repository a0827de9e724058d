// Calls the server's API: JSON, and event streams read with fetch, which can send the key.
import * as key from "./api_key.js";

const MOST_WAITS = 5;

/** `trace` is the id of the trace of what was done, and `cost` its dollars, where the server says them. */
export class ApiError extends Error {
  constructor(status, message, { trace = null, cost = 0 } = {}) {
    super(message);
    Object.assign(this, { status, trace, cost });
  }

  /** Whether the same request may succeed later. */
  get passes() {
    return this.status >= 500 || this.status === 429;
  }
}

/** The JSON at `path`. Asks the user for a key when one is needed. */
export async function requestJson(path, { method = "GET", body, signal } = {}) {
  const response = await send(path, {
    method,
    signal,
    headers: body === undefined ? {} : { "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  return response.status === 204 ? null : response.json();
}

/** The JSON at `path` with its ETag, as {tag, json}. Null while nothing was written since the ETag `tag`. */
export async function requestChanged(path, tag, { signal } = {}) {
  const response = await send(path, { headers: tag ? { "If-None-Match": tag } : {}, signal });
  return response.status === 304 ? null : { tag: response.headers.get("ETag"), json: await response.json() };
}

/** The route of a run, whose name may have slashes. */
export function runPath(name) {
  return `/api/runs/${name.split("/").map(encodeURIComponent).join("/")}`;
}

/** The events of a stream, as {type, data}. */
async function* events(path, { signal } = {}) {
  const response = await send(path, { headers: { Accept: "text/event-stream" }, signal });
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + decoder.decode(value, { stream: true })).split(/\r?\n\r?\n/);
      rest = blocks.pop();
      for (const block of blocks) {
        const event = read(block);
        if (event) yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Follow a stream until `onEvent` returns true. Reconnects, with pauses, when the connection breaks. */
export async function follow(path, { signal, onBegin = () => path, onEvent }) {
  for (let failures = 0; !signal.aborted; failures++) {
    try {
      for await (const { type, data } of events(onBegin() ?? path, { signal })) {
        failures = 0;
        if (onEvent(type, data) === true) return;
      }
      failures = 0; // A stream that ends without its last event is taken up again.
    } catch (error) {
      if (signal.aborted) return;
      if ((error instanceof ApiError && !error.passes) || failures >= 8) throw error;
    }
    await pause(Math.min(8000, 250 * 2 ** failures), signal);
  }
}

/** The response to a request. A request that the key's rate limit refused is sent again when allowed. */
async function send(path, options) {
  for (let waits = 0; ; ) {
    let response;
    try {
      response = await fetch("." + path, { ...options, headers: { ...options.headers, ...key.headers() } });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError(599, "The server cannot be reached. Is it still running?");
    }
    if (response.ok || response.status === 304) return response;
    const error = await complaint(response);
    if (response.status === 401) {
      await key.want(error.message).catch((refused) => {
        throw new ApiError(401, refused.message);
      });
    } else if (response.status === 429 && !options.method?.match(/POST|DELETE/) && waits++ < MOST_WAITS) {
      await pause(1000 * Math.min(60, Number(response.headers.get("Retry-After")) || 1), options.signal);
    } else {
      throw error;
    }
  }
}

async function complaint(response) {
  const { error, detail } = (await response.json().catch(() => null)) ?? {};
  const message = error?.message ?? detail ?? `The server answered ${response.status}.`;
  return new ApiError(response.status, message, { trace: error?.trace_id, cost: Number(response.headers.get("x-podium-cost-usd")) });
}

function read(block) {
  let type = "message";
  const data = [];
  for (const line of block.split(/\r?\n/)) {
    if (line.startsWith("event:")) type = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
  }
  return data.length ? { type, data: JSON.parse(data.join("\n")) } : null;
}

export function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
