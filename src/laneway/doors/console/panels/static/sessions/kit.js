// Shared by the panels of the console: badges, tables, differences, and buttons that ask before they act.

import { announce, button, el } from "/static/page/dom.js";

// Replaces what a node holds. Lists are flattened; what there is not is left out.
export function fill(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
}

const nameOf = (node) => node.id || node.getAttribute("href") || node.textContent;

// The same for what is shown anew: the keyboard's place is kept, and details that were open stay open.
export function refill(node, ...children) {
  const held = node.contains(document.activeElement) ? nameOf(document.activeElement) : null;
  const opened = new Set([...node.querySelectorAll("details[open] > summary")].map(nameOf));
  fill(node, ...children);
  for (const summary of node.querySelectorAll("details > summary")) if (opened.has(nameOf(summary))) summary.parentElement.open = true;
  if (held) [...node.querySelectorAll("a, button, input, summary, pre")].find((each) => nameOf(each) === held)?.focus({ preventScroll: true });
}

export function count(number, one, many = `${one}s`) {
  return `${number} ${number === 1 ? one : many}`;
}

const GOOD = new Set(["succeeded", "completed", "ok", "accepted", "resolved"]);
const BAD = new Set(["failed", "lost", "error", "declined", "timed_out", "stalled", "killed", "overlap"]);
const WARN = new Set(["warning", "cancelled", "interrupted", "waits", "unreachable", "rolled back", "urgent", "sequence", "possible"]);
const WORKING = new Set(["busy", "running", "starting", "cancelling"]);

export function badge(text) {
  const tone = GOOD.has(text) ? "good" : BAD.has(text) ? "bad" : WARN.has(text) ? "warn" : WORKING.has(text) ? "at-work" : "";
  return el("span", { class: `badge ${tone}` }, text);
}

export function number(value) {
  if (!value) return "0";
  return value < 1000 ? String(value) : value < 1_000_000 ? `${(value / 1000).toFixed(1)}k` : `${(value / 1_000_000).toFixed(1)}M`;
}

export function duration(ms) {
  const seconds = Math.round((ms ?? 0) / 1000);
  if (seconds < 60) return `${seconds} s`;
  return seconds < 3600 ? `${Math.floor(seconds / 60)} min ${seconds % 60} s` : `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

export function time(stamp) {
  const at = new Date(stamp);
  return Number.isNaN(at.getTime()) ? "" : el("time", { datetime: at.toISOString(), title: at.toLocaleString() }, at.toLocaleTimeString());
}

// Pairs of a name and a value; those without a value are left out.
export function facts(pairs) {
  const shown = pairs.filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== false);
  return el("dl", { class: "facts" }, shown.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

export function code(text, label) {
  return el("pre", { tabindex: "0", role: "group", "aria-label": label }, text);
}

// A unified difference, each line marked by its sign and a colour.
export function diff(text, label) {
  const lines = text.replace(/\n$/, "").split("\n").map((line) => {
    const sign = line.startsWith("+++") || line.startsWith("---") ? "file" : { "+": "added", "-": "removed", "@": "place" }[line[0]] ?? "";
    return el("span", { class: `line ${sign}` }, `${line}\n`);
  });
  return el("pre", { class: "diff", tabindex: "0", role: "group", "aria-label": label }, lines);
}

// A text merged by git with the base between marks, as pieces: { same } or { one, base, other }.
export function pieces(merged) {
  const found = [];
  let same = [];
  let dispute = null;
  for (const whole of merged.split("\n")) {
    const line = whole.replace(/(\r|\\r)$/, "");
    if (!dispute && line.startsWith("<<<<<<< ")) {
      if (same.length) found.push({ same });
      same = [];
      dispute = { one: [], base: [], other: [] };
      dispute.side = dispute.one;
    } else if (dispute && line.startsWith("||||||| ")) dispute.side = dispute.base;
    else if (dispute && line === "=======") dispute.side = dispute.other;
    else if (dispute && line.startsWith(">>>>>>> ")) {
      found.push(dispute);
      dispute = null;
    } else (dispute ? dispute.side : same).push(line);
  }
  if (same.length) found.push({ same });
  return found;
}

const AROUND = 3;

// The places in dispute: what each of the two made of it, and what was there before.
export function threeWay(merged, names) {
  const all = pieces(merged);
  return el("div", { class: "three-way" }, all.map((piece, at) => {
    if (piece.same) {
      const head = at > 0 ? piece.same.slice(0, AROUND) : [];
      const tail = at < all.length - 1 ? piece.same.slice(-AROUND) : [];
      const shown = piece.same.length <= 2 * AROUND ? piece.same : [...head, "…", ...tail];
      return shown.join("").trim() === "" ? null : el("pre", { class: "same", tabindex: "0", role: "group", "aria-label": "The same in both" }, shown.join("\n"));
    }
    const side = (name, lines, tone) => el("figure", { class: tone },
      el("figcaption", {}, name), el("pre", { tabindex: "0", role: "group", "aria-label": name }, lines.length ? lines.join("\n") : "(nothing)"));
    return el("div", { class: "dispute" }, side(names[0], piece.one, "one"),
      side("before", piece.base, "base"), side(names[1], piece.other, "other"));
  }));
}

const ASKING_MS = 5000;

// Acts at the second press, so that a slip of the hand does nothing.
export function askingButton(label, act, props = {}) {
  let timer = null;
  const made = button(label, () => {
    if (timer === null) {
      made.textContent = `${label}: press again`;
      announce(`Press again to do it: ${label}`);
      timer = setTimeout(calm, ASKING_MS);
      return;
    }
    calm();
    busy(made, act);
  }, props);
  function calm() {
    clearTimeout(timer);
    timer = null;
    made.textContent = label;
  }
  return made;
}

// Acts once at a time; `working` is announced to whoever does not see the button.
export async function busy(made, act) {
  made.disabled = true;
  try {
    await act();
  } finally {
    made.disabled = false;
  }
}

// Runs a piece of work for a person: what does not work is said.
export async function attempt(page, work) {
  try {
    return await work();
  } catch (problem) {
    page.problem(problem.message);
    return null;
  }
}

// Calls `read` now and after each of `ask`, never twice at once; the last call wins. What does not work is said
// at the top of `body`, once, until it works again.
export function reader(body, read) {
  const note = el("p", { class: "bad", role: "alert" });
  let running = false;
  let again = false;
  return async function ask() {
    if (running) {
      again = true;
      return;
    }
    running = true;
    try {
      do {
        again = false;
        await read();
      } while (again);
      note.remove();
    } catch (problem) {
      if (!problem.status) console.error(problem); // the page says itself that the connection is lost
      else if (note.textContent !== problem.message || !note.isConnected) {
        note.textContent = problem.message;
        body.prepend(note);
      }
    } finally {
      running = false;
    }
  };
}

// Shows one view at a time. `open(body, rest)` fills a body of its own and returns { close() }.
export function views(page, main, open) {
  const root = el("div", { class: "panel" });
  main.append(root);
  let shown = 0;
  let view = null;
  return {
    async show(rest = []) {
      shown += 1;
      const mine = shown;
      view?.close();
      view = null;
      const body = el("div", {});
      root.replaceChildren(body);
      const made = await attempt(page, () => open(body, rest));
      if (mine !== shown) {
        made?.close();
        return;
      }
      view = made;
      // Whoever followed a link is at the beginning of what it leads to, also with a screen reader.
      const heading = body.querySelector("h1");
      if (mine > 1 && heading && document.activeElement === document.body) {
        heading.tabIndex = -1;
        heading.focus();
      }
    },
    close() {
      shown += 1;
      view?.close();
    },
  };
}
