// The conversations: a list of them, and the one that the address names.

import { Composer } from "./composer.js";
import { Log, laneClass } from "./entries.js";
import { Questions } from "./questions.js";

const API = "/api/chat";
const NEAR_END_PX = 80;
const NOTIFY_MS = 600;
const FRESH_S = 30;
const MAX_OUTBOX = 20;
const UNNAMED = "New conversation";

export async function mount(main, page) {
  const chat = new ChatView(main, page);
  await chat.readList();
  return chat;
}

class ChatView {
  constructor(main, page) {
    this.page = page;
    this.shown = null;
    this.known = new Map();
    this.stated = new Map();
    this.answered = new Set();
    this.buffer = null;
    const { el, button } = page;
    this.list = el("ul", { class: "conversations" });
    this.title = el("h1", {});
    this.folder = el("p", { class: "soft small" });
    this.entries = el("div", { class: "entries" });
    this.lines = el("div", { class: "log", tabindex: "0", role: "log", "aria-live": "off", "aria-label": "Messages" }, this.entries);
    this.earlier = button("Show earlier", () => this.showEarlier(), { class: "quiet earlier", hidden: true });
    this.leads = el("b", {});
    this.welcome = el("div", { class: "welcome soft" }, el("p", {}, "Say what to do: plain words go to ", this.leads, "."),
      el("p", {}, el("code", {}, "/"), " lists commands, and the other lanes to give a task to. Files can be pasted or dropped."));
    this.down = button("↓ Newest", () => this.toEnd(), { class: "down", hidden: true });
    this.status = el("p", { class: "status small", role: "status" });
    this.asked = el("div", { class: "questions", role: "group", "aria-label": "Open questions", hidden: true });
    this.found = el("section", { class: "found", "aria-label": "Search in this conversation", hidden: true });
    this.log = new Log(page, this.entries, this);
    this.questions = new Questions(page, this.asked, this);
    this.composer = new Composer({ ...page, keep: (text) => this.keepDraft(text) },
      { send: (text, files) => this.send(text, files), commands: () => this.commands(), stop: () => this.send("/stop", []) });
    this.side = el("aside", { class: "side", "aria-label": "Conversations" },
      el("p", { class: "only-narrow" }, button("Close", () => this.toggleSide(), { class: "quiet" })),
      el("p", { class: "buttons" }, button(UNNAMED, () => this.begin(), { class: "primary" })), this.list);
    this.opener = button(page.icon("M4 7h16M4 12h16M4 17h16"), () => this.toggleSide(), { class: "quiet only-narrow", "aria-label": "All conversations" });
    this.side.addEventListener("click", (event) => { if (event.target.closest("a")) this.side.classList.remove("open"); });
    this.side.addEventListener("keydown", (event) => { if (event.key === "Escape" && this.side.classList.contains("open")) this.toggleSide(); });
    this.talk = el("section", { class: "talk", "aria-label": "Conversation", hidden: true },
      el("div", { class: "talk-head" },
        this.opener,
        el("div", { class: "names" }, this.title, this.folder),
        el("div", { class: "tools" },
          button("Search", () => this.toggleSearch()), button("Export", () => this.export()),
          "Notification" in window && button("Notify me", (event) => this.askToNotify(event.target), { class: "notify" }))),
      this.found, el("div", { class: "log-frame" }, this.earlier, this.lines, this.welcome, this.down),
      this.asked, this.status, this.composer.node);
    this.empty = el("p", { class: "none-open soft" }, "No conversation is open. Begin a new one, or choose one from the list.");
    main.append(el("div", { class: "chat" }, this.side, this.talk, this.empty));
    this.composer.takeDrops(this.talk);
    this.talk.addEventListener("click", (event) => {
      if (!this.side.classList.contains("open")) return;
      event.preventDefault();
      event.stopPropagation();
      this.toggleSide();
    }, true);
    this.sticks = true;
    this.top = 0;
    this.lines.addEventListener("scroll", () => this.scrolled());
    // A question that opens, a keyboard, a picture, an entry that gets its real height when it is first on the
    // screen: whoever looked at the end still does.
    this.sized = new ResizeObserver(() => { if (this.sticks) this.toEnd(); });
    this.sized.observe(this.lines);
    this.sized.observe(this.entries);
    this.off = [
      page.on("chat", (event) => this.hear(event)),
      page.onReset(() => this.reload()),
    ];
    this.timer = setInterval(() => this.showStatus(), 1000);
  }

  close() {
    for (const each of this.off) each();
    clearInterval(this.timer);
    this.sized.disconnect();
  }

  // ── the list ───────────────────────────────────────────────────────────

  async readList() {
    const { cwd, conversations } = await this.page.get(`${API}/conversations`);
    this.cwd = cwd;
    const shown = this.known.get(this.shown);
    this.known = new Map(conversations.map((each) => [each.id, each]));
    // Where nothing was said yet is in nobody's list but ours.
    if (shown && !this.known.has(this.shown)) this.known.set(this.shown, shown);
    this.showList();
  }

  // For news that nobody waits for: without a connection the page says so itself, and reads all anew later.
  refreshList() {
    this.readList().catch((problem) => { if (problem.status) this.page.problem(problem.message); });
  }

  showList() {
    const { el, clock } = this.page;
    const sorted = [...this.known.values()].sort((a, b) => b.used_at - a.used_at);
    this.list.replaceChildren(...sorted.map((each) => {
      const status = this.stated.get(each.id);
      const word = status?.is_waiting ? "asks" : status?.active_lane ? "works" : "";
      return el("li", {}, el("a", { href: `#/chat/${encodeURIComponent(each.id)}`, "aria-current": each.id === this.shown ? "page" : null },
        el("span", { class: "name" }, each.title),
        el("span", { class: "soft small" }, clock(each.used_at), each.cwd !== this.cwd && ` ${each.cwd.split("/").pop()}`, word && el("b", { class: `word ${word}` }, ` ${word}`))));
    }));
  }

  // On a narrow screen the list lies above the conversation, until one is chosen or somebody presses beside it.
  toggleSide() {
    const isOpen = this.side.classList.toggle("open");
    if (isOpen) (this.list.querySelector("a") ?? this.side.querySelector("button")).focus();
    else this.opener.focus();
  }

  async begin() {
    try {
      const made = await this.page.post(`${API}/conversations`);
      this.known.set(made.id, made);
      this.page.go("chat", made.id);
    } catch (problem) {
      this.page.problem(problem.message);
    }
  }

  // ── one conversation ───────────────────────────────────────────────────

  async show([conversation]) {
    this.side.classList.remove("open");
    if (!conversation) {
      if (this.shown) {
        this.page.go("chat", this.shown);
        return;
      }
      // What another folder's conversation is told to do would happen there.
      const here = [...this.known.values()].filter((each) => !this.cwd || each.cwd === this.cwd);
      const latest = here.sort((a, b) => b.used_at - a.used_at)[0];
      if (latest && await this.isFree(latest.id)) this.page.go("chat", latest.id);
      else await this.begin();
      return;
    }
    if (conversation === this.shown) return;
    this.shown = conversation;
    this.found.hidden = true;
    this.known_commands = null;
    this.composer.value = sessionStorage.getItem(`laneway.draft.${conversation}`) ?? "";
    await this.read(conversation);
    this.composer.focus();
  }

  // Whether no other process holds it.
  async isFree(conversation) {
    try {
      await this.page.get(`${API}/conversations/${encodeURIComponent(conversation)}/commands`);
      return true;
    } catch {
      return false;
    }
  }

  // Reads it as of now. What happens meanwhile waits in a buffer and follows. Of several that overlap only the one
  // that was asked for last is shown: an earlier answer, or one that comes late, would take away what is newer.
  async read(conversation) {
    const reading = Symbol("read");
    this.reading = reading;
    this.buffer = [];
    try {
      const state = await this.page.get(`${API}/conversations/${encodeURIComponent(conversation)}`);
      if (reading !== this.reading) return;
      this.log.clear();
      this.log.defaultLane = state.lane;
      this.questions.clear();
      for (const item of state.items) this.log.add(item);
      for (const part of state.live) this.log.live(part);
      this.questions.set(state.questions);
      this.first = state.first;
      this.earlier.hidden = state.first <= 1;
      this.last = state.last;
      this.stated.set(conversation, state.status);
      this.known.set(conversation, { ...this.known.get(conversation), ...state, items: undefined, live: undefined });
      this.head(state);
      this.talk.hidden = false;
      this.empty.hidden = true;
      this.resend(conversation);
    } catch (problem) {
      if (reading !== this.reading) return;
      this.talk.hidden = true;
      this.empty.hidden = false;
      this.empty.textContent = problem.message;
    } finally {
      if (reading === this.reading) {
        const waiting = this.buffer ?? [];
        this.buffer = null;
        for (const event of waiting) this.hear(event);
      }
    }
    this.showList();
    this.showStatus();
    this.toEnd();
  }

  async reload() {
    const { scrollTop } = this.lines;
    const wasAtEnd = this.isAtEnd();
    await this.readList();
    if (this.shown) await this.read(this.shown);
    if (!wasAtEnd) this.lines.scrollTop = scrollTop;
  }

  async showEarlier() {
    const { items, first } = await this.page.get(`${API}/conversations/${encodeURIComponent(this.shown)}?before=${this.first}`);
    const height = this.lines.scrollHeight;
    const before = this.entries.firstChild;
    for (const item of items) this.log.add(item, before);
    this.first = first;
    this.earlier.hidden = first <= 1;
    this.lines.scrollTop += this.lines.scrollHeight - height;
  }

  // ── events ─────────────────────────────────────────────────────────────

  hear(event) {
    const { topic, data } = event;
    if (topic === "moved") {
      if (data.conversation === this.shown && Date.now() < (this.movesUntil ?? 0)) {
        this.readList().then(() => this.page.go("chat", data.to));
      }
      return;
    }
    if (topic === "began") {
      this.refreshList();
      return;
    }
    if (topic === "status") {
      this.stated.set(data.conversation, data);
      this.showList();
    }
    if (topic === "item") this.consider(data);
    if (topic === "item" && data.kind === "said") this.noteUse(data);
    if (data.conversation !== this.shown) return;
    if (this.buffer) {
      this.buffer.push(event);
      return;
    }
    const atEnd = this.sticks;
    if (topic === "status") this.showStatus();
    else if (topic === "item") this.take(data);
    else if (topic === "live" && !this.log.live(data)) this.read(this.shown);
    else if (topic === "output") this.log.output(data);
    if (atEnd) this.toEnd();
    else this.down.hidden = false;
  }

  take(item) {
    if (item.n > this.last + 1) {
      // Something is missing: read it anew rather than show it with a hole.
      this.read(this.shown);
      return;
    }
    this.last = Math.max(this.last, item.n);
    if (!this.log.add(item)) return;
    if (item.kind === "question") {
      this.questions.ask(item);
      this.page.announce(`${item.asker} asks: ${item.title}`);
    }
    if (item.kind === "question_over") this.questions.over(item.number);
    if (item.kind === "text") this.page.announce(`${item.lane}: ${this.log.keyed.get(`part ${item.part}`)?.textContent ?? ""}`.slice(0, 600));
    if (item.kind === "told") this.page.announce(this.entries.lastElementChild?.textContent ?? "");
  }

  // Somebody spoke: this conversation is the latest, and its first words are its title.
  noteUse({ conversation, at, text }) {
    const known = this.known.get(conversation);
    if (!known) {
      this.refreshList();
      return;
    }
    known.used_at = at;
    if (known.title === UNNAMED && text) known.title = text.trim().replace(/\s+/g, " ").slice(0, 80);
    if (conversation === this.shown) this.head(known);
    this.showList();
  }

  head({ title, cwd }) {
    this.title.textContent = title;
    this.folder.textContent = cwd;
    this.page.title(title);
  }

  // A notice for what just happened, if it still matters in a moment and nobody looks.
  consider(item) {
    const { conversation } = item;
    if (item.kind === "question_over") this.answered.add(`${conversation} ${item.number}`);
    if (!this.page.isLeader() || (item.kind !== "question" && item.kind !== "turn_ended")) return;
    // What comes after a lost connection may be long past.
    if (Date.now() / 1000 - item.at > FRESH_S) return;
    setTimeout(() => {
      if (item.kind === "question" && this.answered.has(`${conversation} ${item.number}`)) return;
      const title = this.known.get(conversation)?.title ?? "Laneway";
      const words = item.kind === "question" ? `${item.asker} asks: ${item.title}` : `${item.lane} ${item.status === "completed" ? "is done" : item.status}`;
      this.page.notify(title, words, `${conversation} ${item.number ?? "done"}`, () => this.page.go("chat", conversation));
    }, NOTIFY_MS);
  }

  showStatus() {
    const status = this.stated.get(this.shown);
    if (!status) {
      this.status.textContent = "";
      return;
    }
    this.composer.working(Boolean(status.active_lane));
    this.leads.textContent = status.default_lane;
    const since = status.working_since ? Math.max(0, Math.round(Date.now() / 1000 - status.working_since)) : 0;
    const parts = [
      status.is_waiting ? "A question is open" : status.active_lane ? `${status.active_lane} works${since ? ` ${since} s` : ""}` : `${status.default_lane} is next`,
      status.queued ? `${status.queued} waiting` : "", status.model,
      status.tokens ? `${status.tokens.toLocaleString()}${status.window ? ` of ${status.window.toLocaleString()}` : ""} tokens` : "",
    ];
    const words = parts.filter(Boolean).join(" · ");
    if (this.status.textContent !== words) this.status.textContent = words;
    this.status.className = `status small ${laneClass(status.active_lane ?? status.default_lane)}${status.active_lane ? " working" : ""}`;
  }

  // ── sending ────────────────────────────────────────────────────────────

  keepDraft(text) {
    if (text) sessionStorage.setItem(`laneway.draft.${this.shown}`, text);
    else sessionStorage.removeItem(`laneway.draft.${this.shown}`);
  }

  outbox(conversation, change) {
    const name = `laneway.outbox.${conversation}`;
    const kept = change(JSON.parse(sessionStorage.getItem(name) ?? "[]"));
    if (kept.length) sessionStorage.setItem(name, JSON.stringify(kept.slice(-MAX_OUTBOX)));
    else sessionStorage.removeItem(name);
    return kept;
  }

  async send(text, files) {
    const conversation = this.shown;
    const key = this.page.newKey();
    if (/^\/(new|resume|join)\b/.test(text)) this.movesUntil = Date.now() + 30_000;
    this.log.pending(key, text, files.length);
    this.toEnd();
    try {
      const uploads = [];
      for (const file of files) uploads.push(await this.upload(file));
      const message = { text, uploads: uploads.map((each) => each.id), names: uploads.map((each) => each.name) };
      this.outbox(conversation, (kept) => [...kept, { key, message }]);
      await this.post(conversation, key, message);
    } catch (problem) {
      this.log.refuse(key, problem.message);
    }
  }

  async post(conversation, key, message) {
    try {
      await this.page.post(`${API}/conversations/${encodeURIComponent(conversation)}/messages`, message, { key });
    } catch (problem) {
      // Without a valid token nothing was decided: it is sent again once there is one.
      if (problem.status === 401) return;
      this.outbox(conversation, (kept) => kept.filter((each) => each.key !== key));
      throw problem;
    }
    this.outbox(conversation, (kept) => kept.filter((each) => each.key !== key));
  }

  // What was being sent when the page was closed or reloaded: the key lets it arrive once.
  resend(conversation) {
    for (const { key, message } of this.outbox(conversation, (kept) => kept)) {
      if (!this.log.keyed.has(`message ${key}`)) this.log.pending(key, message.text, message.uploads.length);
      this.post(conversation, key, message).catch((problem) => this.log.refuse(key, problem.message));
    }
  }

  async upload(file) {
    // Read here: a folder, or a file that is gone, would look like a lost connection.
    const body = await file.arrayBuffer().catch(() => { throw new Error(`${file.name} cannot be read`); });
    const headers = { "content-type": "application/octet-stream", "x-file-name": encodeURIComponent(file.name || "pasted") };
    return this.page.post(`${API}/uploads`, null, { body, headers });
  }

  async commands() {
    this.known_commands ??= this.page.get(`${API}/conversations/${encodeURIComponent(this.shown)}/commands`).catch(() => []);
    return this.known_commands;
  }

  // ── what entries and questions do ──────────────────────────────────────

  async tap(data, more = {}) {
    const result = await this.page.post(`${API}/conversations/${encodeURIComponent(this.shown)}/taps`, { data, ...more });
    if (!result.done) this.page.announce(result.text);
    return result;
  }

  async skip(number) {
    await this.page.post(`${API}/conversations/${encodeURIComponent(this.shown)}/messages`, { text: "skip", question: number });
  }

  focus() {
    this.composer.focus();
  }

  async output(number) {
    return (await this.page.get(`${API}/conversations/${encodeURIComponent(this.shown)}/outputs/${number}`)).text;
  }

  async file(item, entry) {
    const path = `${API}/conversations/${encodeURIComponent(this.shown)}/files/${item.n}`;
    try {
      return await (await this.page.request(path)).blob();
    } catch (problem) {
      entry.querySelector(".asks-first")?.remove();
      const note = this.page.el("div", { class: "asks-first", role: "alert" }, this.page.el("p", {}, problem.message));
      if (problem.detail?.needs_approval) {
        note.append(this.page.button("Send it anyway", async () => {
          await this.page.post(`${path}/approve`);
          note.remove();
          this.download(item, entry);
        }, { class: "no" }));
      }
      entry.append(note);
      return null;
    }
  }

  async download(item, entry) {
    const blob = await this.file(item, entry);
    if (blob) this.save(blob, item.name);
  }

  async picture(item, entry) {
    const blob = await this.file(item, entry);
    if (!blob || entry.querySelector("img")) return;
    const kind = `image/${/jpe?g$/i.test(item.name) ? "jpeg" : item.name.split(".").pop().toLowerCase()}`;
    entry.append(this.page.el("img", { src: URL.createObjectURL(new Blob([blob], { type: kind })), alt: item.caption || item.name }));
  }

  save(blob, name) {
    const link = this.page.el("a", { href: URL.createObjectURL(blob), download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  async export() {
    try {
      const response = await this.page.request(`${API}/conversations/${encodeURIComponent(this.shown)}/export`);
      this.save(await response.blob(), `conversation-${this.shown}.html`);
    } catch (problem) {
      this.page.problem(problem.message);
    }
  }

  async askToNotify(button) {
    const answer = await Notification.requestPermission();
    button.textContent = answer === "granted" ? "You are notified" : "Notices are blocked";
    button.disabled = answer !== "default";
  }

  // ── search and scrolling ───────────────────────────────────────────────

  toggleSearch() {
    const { el, button } = this.page;
    this.found.hidden = !this.found.hidden;
    if (this.found.hidden) {
      this.focus();
      return;
    }
    const results = el("ul", { class: "results" });
    const count = el("p", { class: "soft small", role: "status" });
    const input = el("input", { type: "search", id: "search", "aria-label": "Search in this conversation", placeholder: "Search" });
    this.found.replaceChildren(el("form", {
      on: { submit: (event) => { event.preventDefault(); this.search(input.value, results, count); } },
    }, input, " ", el("button", { class: "primary" }, "Search"), " ", button("Close", () => this.toggleSearch(), { class: "quiet" })), count, results);
    this.found.onkeydown = (event) => { if (event.key === "Escape") this.toggleSearch(); };
    input.focus();
  }

  async search(words, results, count) {
    const path = `${API}/conversations/${encodeURIComponent(this.shown)}/search?q=${encodeURIComponent(words)}`;
    const { found, count: all } = await this.page.get(path);
    count.textContent = all === 0 ? "Nothing was found." : all === 1 ? "Found once." : `Found in ${all} places.`;
    results.replaceChildren(...found.reverse().map((each) => this.page.el("li", {},
      this.page.button(each.text, () => this.reveal(each.n), { class: "quiet" }), this.page.clock(each.at))));
  }

  async reveal(number) {
    while (this.first > number) await this.showEarlier();
    const entries = [...this.entries.querySelectorAll("[data-n]")].filter((each) => Number(each.dataset.n) <= number);
    const entry = entries.sort((a, b) => Number(b.dataset.n) - Number(a.dataset.n))[0];
    if (!entry) return;
    for (const each of entry.querySelectorAll("details")) each.open = true;
    entry.tabIndex = -1;
    entry.scrollIntoView({ block: "center" });
    entry.focus();
  }

  isAtEnd() {
    return this.lines.scrollHeight - this.lines.scrollTop - this.lines.clientHeight < NEAR_END_PX;
  }

  toEnd() {
    this.sticks = true;
    this.lines.scrollTop = this.lines.scrollHeight;
    this.top = this.lines.scrollTop;
    this.down.hidden = true;
  }

  // Only a way up is a person's: what grows below the end is followed.
  scrolled() {
    const { scrollTop } = this.lines;
    if (this.isAtEnd()) {
      this.sticks = true;
      this.down.hidden = true;
    } else if (scrollTop < this.top) this.sticks = false;
    this.top = scrollTop;
  }
}
