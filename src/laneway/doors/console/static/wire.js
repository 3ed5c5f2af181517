// Speaks to the server: the token as a header, requests that may be sent again, one stream of events per browser.
//
// Of all tabs the one that holds a lock reads the stream and passes it on; when it closes, another one resumes
// after the last number that it saw. Server-sent events are read with fetch: EventSource cannot send the token.

const TOKEN = "laneway.token";
const SILENT_MS = 45_000;
const RETRY_MS = [300, 600, 1200, 2500, 5000];

export class PageError extends Error {
  constructor(status, message, detail = {}) {
    super(message);
    this.status = status;
    this.detail = detail;
  }
}

let token = null;

// The address has the token once; from then on it is only in sessionStorage.
export function takeToken() {
  const found = /^#token=([^&]+)(?:&to=(.*))?$/.exec(location.hash);
  if (found) {
    sessionStorage.setItem(TOKEN, decodeURIComponent(found[1]));
    history.replaceState(null, "", `${location.pathname}#${found[2] ?? "/"}`);
  }
  token = sessionStorage.getItem(TOKEN);
  return Boolean(token);
}

export function useToken(text) {
  token = text;
  sessionStorage.setItem(TOKEN, text);
}

export function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function pause(ms) {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    addEventListener("online", () => { clearTimeout(timer); done(); }, { once: true });
  });
}

export async function request(path, init = {}) {
  const headers = { authorization: `Bearer ${token}`, ...init.headers };
  const response = await fetch(path, { cache: "no-store", credentials: "omit", redirect: "error", ...init, headers });
  if (response.ok) return response;
  let detail = {};
  try {
    detail = await response.json();
  } catch {
    // Not ours: a proxy's page.
  }
  if (response.status === 401) setState("locked");
  throw new PageError(response.status, detail.error ?? response.statusText, detail);
}

export async function get(path) {
  return (await request(path)).json();
}

// Sent again until it is answered: the key lets the server carry it out once.
export async function post(path, value, { key = newKey(), body, headers } = {}) {
  const init = {
    method: "POST",
    headers: { "idempotency-key": key, "content-type": "application/json", ...headers },
    body: body ?? JSON.stringify(value ?? {}),
  };
  for (let tries = 0; ; tries += 1) {
    try {
      return await (await request(path, init)).json();
    } catch (problem) {
      if (problem instanceof PageError && problem.status !== 503) throw problem;
      if (state === "connected") setState("lost");
      await pause(RETRY_MS[Math.min(tries, RETRY_MS.length - 1)]);
    }
  }
}

// ── events ───────────────────────────────────────────────────────────────────

const heard = new Map();
const resets = new Set();
const states = new Set();
const channel = new BroadcastChannel("laneway.events");
let last = null;
let state = "new";
let leads = false;

export function on(part, hear) {
  if (!heard.has(part)) heard.set(part, new Set());
  heard.get(part).add(hear);
  return () => heard.get(part).delete(hear);
}

// Too much was missed: whatever is shown has to be read anew.
export function onReset(act) {
  resets.add(act);
  return () => resets.delete(act);
}

export function onState(act) {
  states.add(act);
  act(state);
  return () => states.delete(act);
}

export function isLeader() {
  return leads;
}

function setState(now) {
  // Another tab may have the token that is valid now.
  if (leads && now !== "locked") channel.postMessage({ state: now });
  if (now === state) return;
  state = now;
  for (const act of states) act(now);
}

function take({ id, kind, data }) {
  if (kind === "message" && id && last) {
    const [run, number] = id.split(".");
    const [lastRun, lastNumber] = last.split(".");
    if (run === lastRun && Number(number) <= Number(lastNumber)) return;
  }
  if (id) last = id;
  if (kind === "reset") for (const act of resets) act();
  if (kind !== "message") return;
  const event = JSON.parse(data);
  for (const hear of heard.get(event.part) ?? []) {
    try {
      hear(event);
    } catch (bug) {
      console.error(bug);
    }
  }
}

function parsed(block) {
  const event = { id: null, kind: "message", data: "" };
  for (const line of block.split("\n")) {
    if (line.startsWith("id: ")) event.id = line.slice(4);
    else if (line.startsWith("event: ")) event.kind = line.slice(7);
    else if (line.startsWith("data: ")) event.data += line.slice(6);
  }
  return event.data || event.kind !== "message" ? event : null;
}

async function readOnce() {
  const stop = new AbortController();
  let watchdog = setTimeout(() => stop.abort(), SILENT_MS);
  try {
    const headers = last ? { "last-event-id": last } : {};
    const response = await request("/api/events", { headers, signal: stop.signal });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      clearTimeout(watchdog);
      watchdog = setTimeout(() => stop.abort(), SILENT_MS);
      setState("connected");
      text += value;
      const blocks = text.split("\n\n");
      text = blocks.pop();
      for (const event of blocks.map(parsed).filter(Boolean)) {
        take(event);
        channel.postMessage({ event });
      }
    }
  } finally {
    clearTimeout(watchdog);
    stop.abort();
  }
}

async function lead() {
  leads = true;
  for (let tries = 0; ; tries += 1) {
    const before = last;
    try {
      await readOnce();
    } catch (problem) {
      if (problem instanceof PageError && problem.status === 401) {
        leads = false; // and the lock goes to the next tab
        return;
      }
    }
    if (last !== before) tries = 0;
    setState("lost");
    await pause(RETRY_MS[Math.min(tries, RETRY_MS.length - 1)]);
  }
}

channel.addEventListener("message", ({ data }) => {
  if (data.asks && leads) channel.postMessage({ state });
  if (leads || state === "locked") return;
  if (data.state) setState(data.state);
  if (data.event) take(data.event);
});

export function listen(position) {
  last ??= position;
  // Without Web Locks (a page that is neither on this machine nor on https) each tab has its own stream.
  if (navigator.locks) navigator.locks.request("laneway.events", lead);
  else lead();
  channel.postMessage({ asks: true });
}
