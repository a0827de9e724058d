// The chat's threads, kept in this browser alone (localStorage). Every change is written at once, so that a thread can be
// left and opened again, here or in another tab, while one of its questions runs.
//
// A thread: {id, name, at, turns}. A turn: {key, question, history, state, id, plan, status, answer, error, cost, seconds,
// outcome}; state "planning", "waiting" (for approval), "running" or "ended"; id is its trace's; cost in dollars.

const PREFIX = "podium.thread.";

/** {id, name, at} of every thread, the latest first. */
export function listThreads() {
  const found = [];
  for (let i = 0; i < localStorage.length; i++) {
    const thread = localStorage.key(i).startsWith(PREFIX) && parsed(localStorage.key(i));
    if (thread) found.push({ id: thread.id, name: thread.name, at: thread.at });
  }
  return found.sort((a, b) => b.at - a.at);
}

/** The thread; null if there is none. */
export function readThread(id) {
  return id ? parsed(PREFIX + id) : null;
}

/** A new thread that begins with `question`, which is its name, too. */
export function newThread(question) {
  return { id: unique(), name: question.replace(/\s+/g, " ").trim().slice(0, 60), at: Date.now(), turns: [] };
}

/** Write a thread. An error says that the browser has no room left. */
export function writeThread(thread) {
  try {
    localStorage.setItem(PREFIX + thread.id, JSON.stringify(thread));
  } catch {
    throw new Error("The browser has no room left for this thread; delete an older one.");
  }
}

export function removeThread(id) {
  localStorage.removeItem(PREFIX + id);
}

/** Call `changed` when another tab changes a thread; returns how to stop that. */
export function onOtherTabs(changed) {
  const listen = ({ key }) => (key === null || key.startsWith(PREFIX)) && changed();
  addEventListener("storage", listen);
  return () => removeEventListener("storage", listen);
}

export function newTurn(question, history) {
  return { key: unique(), question, history, state: "planning", id: null, plan: null, status: null, answer: null, cost: 0 };
}

/** What was said in `turns`, as the messages before the next question. */
export function historyOf(turns) {
  return turns
    .filter(({ answer }) => answer)
    .flatMap(({ question, answer }) => [
      { role: "user", content: question },
      { role: "assistant", content: answer },
    ]);
}

function parsed(key) {
  try {
    const thread = JSON.parse(localStorage.getItem(key));
    return Array.isArray(thread?.turns) ? thread : null;
  } catch {
    return null;
  }
}

function unique() {
  return Date.now().toString(36) + Math.random().toString(36).slice(2, 8);
}
