// The log of one conversation: every output as an element; later outputs change earlier elements in place.

import { foldedDiffs } from "./diff.js";

const RECEIPTS = {
  begun: "", queued: "Waits", held: "Waits behind a question", steered: "Went into the running turn",
  answered: "Answered the question", kept: "Kept for your next message", done: "", refused: "Not taken",
};
const HOW = {
  answered: "answered", declined: "declined", expired: "nobody answered in time", withdrawn: "not needed any more",
  void: "not answered: Laneway ended",
};
const MARKS = { completed: "☑", running: "▶", pending: "☐" };
const PLAN_WORDS = { completed: "done", running: "in progress", pending: "to do" };
const LIVE_LINES = 400;
const LANES = 5;

export function laneClass(lane) {
  const sum = [...(lane ?? "")].reduce((total, letter) => (total * 31 + letter.codePointAt(0)) % 997, 7);
  return { claude: "lane-0", codex: "lane-1", rehearse: "lane-3" }[lane] ?? `lane-${sum % LANES}`;
}

function duration(seconds) {
  if (seconds < 1) return "";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

export class Log {
  // `act` has what entries can do: attempt(work), tap(data), download(item, entry), picture(item, entry), output(number).
  constructor(page, root, act) {
    this.page = page;
    this.root = root;
    this.act = act;
    this.clear();
  }

  clear() {
    this.keyed = new Map();
    this.banners = new Map();
    this.defaultLane = "";
    this.numbers = new Set();
    // What changes an entry that is not here yet: it is among the earlier ones.
    this.late = new Map();
    this.root.replaceChildren();
  }

  // ── what comes ─────────────────────────────────────────────────────────

  // Whether it was new. `before` is where older entries go.
  add(item, before = null) {
    if (this.numbers.has(item.n)) return false;
    this.numbers.add(item.n);
    const known = this[`on_${item.kind}`];
    const entry = known?.call(this, item);
    if (entry) {
      entry.dataset.n = item.n;
      this.root.insertBefore(entry, before);
    }
    return true;
  }

  live(part) {
    let entry = this.keyed.get(`part ${part.part}`);
    if (!entry) {
      const folded = part.kind === "thought";
      const body = this.page.el("div", { class: "text" });
      const tail = this.page.el("div", { class: "tail" });
      entry = folded ? this.folded(part, "Thinking …", "thought working", body, tail)
        : this.entry(part, "answer", body, tail);
      Object.assign(entry, { body, tail, count: 0 });
      this.keyed.set(`part ${part.part}`, entry);
      this.root.append(entry);
    }
    if (part.first > entry.count) return false;
    for (const tree of part.trees.slice(entry.count - part.first)) entry.body.append(this.page.trees(tree));
    entry.count = Math.max(entry.count, part.first + part.trees.length);
    entry.tail.textContent = part.tail;
    return true;
  }

  output({ item, ticket, text }) {
    const entry = this.keyed.get(`activity ${ticket} ${item}`);
    if (!entry) return;
    entry.lines = (entry.lines + text).split("\n").slice(-LIVE_LINES).join("\n");
    if (!entry.pre) {
      entry.pre = this.page.el("pre", { tabindex: "0" });
      entry.querySelector("details").append(entry.pre);
    }
    entry.pre.textContent = entry.lines;
    entry.pre.scrollTop = entry.pre.scrollHeight;
  }

  pending(key, text, files) {
    const entry = this.page.el("article", { class: "entry said pending" },
      this.page.el("p", { class: "text" }, text || `${files} files`), this.page.el("p", { class: "receipt" }, "Sending …"));
    this.keyed.set(`message ${key}`, entry);
    this.root.append(entry);
    return entry;
  }

  refuse(key, text) {
    const entry = this.keyed.get(`message ${key}`);
    if (entry) entry.querySelector(".receipt").textContent = `Not sent: ${text}`;
    entry?.classList.add("refused");
  }

  // ── people ─────────────────────────────────────────────────────────────

  on_said(item) {
    const { el, clock } = this.page;
    const sent = this.keyed.get(`message ${item.message}`);
    const entry = el("article", { class: "entry said", "aria-label": `${item.sender} says` },
      el("p", { class: "who" }, el("b", {}, item.sender), item.platform === "web" ? "" : ` · ${item.platform}`,
        item.lane ? ` → ${item.lane}` : "", " ", clock(item.at)),
      item.text && el("p", { class: "text" }, item.text),
      item.images > 0 && el("p", { class: "soft small" }, item.images === 1 ? "1 image" : `${item.images} images`),
      el("p", { class: "receipt" }));
    this.keyed.set(`message ${item.message}`, entry);
    this.keyed.set(`input ${item.input}`, entry);
    sent?.remove();
    this.after(`input ${item.input}`);
    return entry;
  }

  // Applies what came before the entry that it changes.
  after(key) {
    const late = this.late.get(key);
    this.late.delete(key);
    if (late) this[`on_${late.kind}`](late);
  }

  on_receipt(item) {
    const entry = this.keyed.get(`message ${item.message}`) ?? this.keyed.get(`input ${item.input}`);
    if (!entry) {
      this.late.set(`input ${item.input}`, item);
      return null;
    }
    // Of earlier ones that are read later.
    if (entry.receiptNumber > item.n) return null;
    entry.receiptNumber = item.n;
    const place = item.receipt === "queued" && item.position ? ` (number ${item.position})` : "";
    const words = item.text || (RECEIPTS[item.receipt] ?? "") + place;
    const line = entry.querySelector(".receipt");
    line.textContent = words;
    line.classList.toggle("bad", item.receipt === "refused");
    return null;
  }

  // ── turns ──────────────────────────────────────────────────────────────

  on_turn_began(item) {
    this.banners.set(item.ticket, item.banner);
    if (!item.banner) return null;
    const { el } = this.page;
    const caller = item.caller ? ` for ${item.caller}` : "";
    return el("div", { class: `entry banner begins ${laneClass(item.lane)}` },
      el("h2", {}, `${item.lane} started${caller}`), item.task && el("p", { class: "task" }, item.task));
  }

  on_turn_ended(item) {
    const { el, button } = this.page;
    for (const [key, entry] of this.keyed) {
      if (key.startsWith("part ") && entry.ticket === item.ticket && entry.tail?.isConnected) {
        entry.classList.remove("working");
      }
    }
    const words = { completed: "is done", failed: "failed", interrupted: "was stopped" }[item.status] ?? item.status;
    const facts = [duration(item.seconds), item.tokens ? `${item.tokens.toLocaleString()} tokens` : ""].filter(Boolean);
    const diffs = foldedDiffs(this.page, item.diffs);
    const buttons = item.buttons.map((each) => button(each.label, () => this.act.attempt(() => this.act.tap(each.data)), { class: each.style }));
    if (!item.banner && item.status === "completed" && !diffs && !buttons.length) return null;
    return el("div", { class: `entry banner ends ${laneClass(item.lane)}` },
      (item.banner || item.status !== "completed") && el("h2", { class: item.status === "failed" ? "bad" : "" },
        `${item.lane} ${words}`, facts.length ? el("span", { class: "soft small" }, ` ${facts.join(" · ")}`) : ""),
      item.failure && el("p", { class: "bad" }, item.failure), diffs,
      buttons.length > 0 && el("p", { class: "buttons" }, buttons));
  }

  on_text(item) {
    return this.finished(item, this.entry(item, "answer", this.page.el("div", { class: "text" }, this.page.trees(item.tree))));
  }

  on_thought(item) {
    return this.finished(item, this.folded(item, "Thoughts", "thought", this.page.el("div", { class: "text" },
      this.page.trees(item.tree))));
  }

  on_activity(item) {
    const { el, button } = this.page;
    const name = (this.banners.get(item.ticket) ?? item.lane !== this.defaultLane) ? `${item.lane}::${item.title}` : item.title;
    const state = { running: "", completed: "✓", failed: "✗", declined: "✗", interrupted: "■", detached: "…" }[item.status];
    const key = `activity ${item.ticket} ${item.item}`;
    const known = this.keyed.get(key);
    const details = el("details", { open: known?.querySelector("details")?.open },
      el("summary", {}, el("span", { class: `state ${item.status}`, role: "img", "aria-label": item.status }, state ?? ""), " ",
        el("code", {}, name), item.outcome && el("span", { class: "soft" }, ` ${item.outcome}`),
        item.lines > 1 && el("span", { class: "soft small" }, ` ${item.lines.toLocaleString()} lines`)),
      item.command && !item.title.includes(item.command) && el("pre", { tabindex: "0" }, item.command),
      item.input.length > 0 && this.page.trees(item.input));
    const entry = this.entry(item, `activity ${item.status}${item.status === "running" ? " working" : ""}`, details,
      foldedDiffs(this.page, item.diffs));
    entry.lines = known?.lines ?? "";
    if (item.output) {
      entry.pre = el("pre", { tabindex: "0" }, item.output);
      details.append(entry.pre);
      if (!item.is_whole) {
        details.append(button("Show all of it", async (event) => {
          event.target.disabled = true;
          const text = await this.act.output(item.n);
          event.target.disabled = false;
          if (text === null) return;
          entry.pre.textContent = text;
          event.target.remove();
        }));
      }
    } else if (entry.lines) {
      entry.pre = el("pre", { tabindex: "0" }, entry.lines);
      details.append(entry.pre);
    }
    if (!item.output && !entry.lines && details.children.length === 1 && item.status !== "running") details.classList.add("empty");
    return this.replaced(key, known, entry, item.n);
  }

  on_plan(item) {
    const { el } = this.page;
    const key = `plan ${item.ticket}`;
    const entry = this.entry(item, "plan", el("p", { class: "who" }, `${item.lane}: plan`),
      item.explanation && el("p", {}, item.explanation),
      el("ul", {}, item.steps.map((step) => el("li", { class: step.status },
        el("span", { role: "img", "aria-label": PLAN_WORDS[step.status] ?? step.status }, MARKS[step.status] ?? "☐"), ` ${step.text}`))));
    return this.replaced(key, this.keyed.get(key), entry, item.n);
  }

  // ── questions, and Laneway itself ──────────────────────────────────────

  on_question(item) {
    const { el } = this.page;
    const entry = el("div", { class: `entry asked ${laneClass(item.lane)}` },
      el("p", {}, el("b", {}, `${item.asker} asks (#${item.number}): `), item.title), el("p", { class: "answer-given soft" }));
    this.keyed.set(`question ${item.number}`, entry);
    this.after(`question ${item.number}`);
    return entry;
  }

  on_question_over(item) {
    const line = this.keyed.get(`question ${item.number}`)?.querySelector(".answer-given");
    const by = item.by ? ` by ${item.by}` : "";
    if (!line) this.late.set(`question ${item.number}`, item);
    else line.textContent = `${HOW[item.how] ?? item.how}${by}${item.text ? `: ${item.text}` : ""}`;
    return null;
  }

  on_told(item) {
    const { el, button } = this.page;
    const buttons = item.buttons.map((each) => button(each.label, () => this.act.attempt(() => this.act.tap(each.data)), { class: each.style }));
    return el("div", { class: `entry told ${item.level}`, role: item.level === "error" ? "alert" : null },
      this.page.trees(item.tree), buttons.length > 0 && el("p", { class: "buttons" }, buttons));
  }

  on_file(item) {
    const { el, button } = this.page;
    const entry = this.entry(item, "file", el("p", {}, el("b", {}, item.name), " ", el("span", { class: "soft small" }, item.path)),
      item.caption && el("p", {}, item.caption),
      el("p", { class: "buttons" }, button("Save", () => this.act.download(item, entry)),
        /\.(png|jpe?g|gif|webp)$/i.test(item.name) && button("Show", () => this.act.picture(item, entry))));
    return entry;
  }

  // ── elements ───────────────────────────────────────────────────────────

  entry(item, kind, ...children) {
    const entry = this.page.el("article", { class: `entry ${kind} ${laneClass(item.lane)}`, "aria-label": item.lane },
      (kind === "answer" || kind === "file") && this.page.el("p", { class: "who lane" }, item.lane), children);
    entry.ticket = item.ticket;
    return entry;
  }

  folded(item, words, kind, ...children) {
    return this.entry(item, kind, this.page.el("details", {}, this.page.el("summary", {}, words), children));
  }

  finished(item, entry) {
    const key = `part ${item.part}`;
    const known = this.keyed.get(key);
    if (known?.querySelector("details")?.open) entry.querySelector("details").open = true;
    return this.replaced(key, known, entry, item.n);
  }

  // In the place of what was shown before. An earlier state that is read later changes nothing.
  replaced(key, known, entry, number) {
    if (known?.number > number) return null;
    entry.number = number;
    this.keyed.set(key, entry);
    if (!known?.isConnected) return entry;
    entry.dataset.n = known.dataset.n ?? "";
    known.replaceWith(entry);
    return null;
  }
}
