// The conversations: a list of them, and the one that the address names.

import { Composer } from "./composer.js";
import { Log, laneClass } from "./entries.js";
import { Files } from "./files.js";
import { Outbox } from "./outbox.js";
import { Questions } from "./questions.js";
import { Search } from "./search.js";

const API = "/api/chat";
const NEAR_END_PX = 80;
const NOTIFY_MS = 600;
const FRESH_S = 30;
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
    this.earlier = button("Show earlier", () => this.attempt(() => this.showEarlier()), { class: "quiet earlier", hidden: true });
    this.leads = el("b", {});
    this.welcome = el("div", { class: "welcome soft" }, el("p", {}, "Write what you want done. Messages go to ", this.leads, "."),
      el("p", {}, el("code", {}, "/"), " lists the commands and the other lanes, such as ", el("code", {}, "/codex fix the tests"), ". You can paste or drop files."));
    this.down = button("↓ Newest", () => this.toEnd(), { class: "down", hidden: true });
    this.status = el("p", { class: "status small", role: "status" });
    this.asked = el("div", { class: "questions", role: "group", "aria-label": "Open questions", hidden: true });
    this.search = new Search(page, this);
    this.log = new Log(page, this.entries, this);
    this.files = new Files(page);
    this.outbox = new Outbox(page, this.log);
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
          button("Search", () => this.search.toggle()), button("Export", () => this.export()),
          "Notification" in window && Notification.permission !== "granted" && this.notifyButton())),
      this.search.node, el("div", { class: "log-frame" }, this.earlier, this.lines, this.welcome, this.down),
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

  // The address of something of the conversation that is shown.
  at(path) {
    return `${API}/conversations/${encodeURIComponent(this.shown)}/${path}`;
  }

  // Does what a person asked for, and says it if it did not work.
  async attempt(work) {
    try {
      return await work();
    } catch (problem) {
      this.page.problem(problem.status ? problem.message : "Laneway cannot be reached now: try again in a moment.");
      return null;
    }
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
    const made = await this.attempt(() => this.page.post(`${API}/conversations`));
    if (!made) return;
    this.known.set(made.id, made);
    this.page.go("chat", made.id);
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
    this.search.node.hidden = true;
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
      this.outbox.resend(conversation);
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

  // ── what people send ───────────────────────────────────────────────────

  keepDraft(text) {
    if (text) sessionStorage.setItem(`laneway.draft.${this.shown}`, text);
    else sessionStorage.removeItem(`laneway.draft.${this.shown}`);
  }

  send(text, files) {
    if (/^\/(new|resume|join)\b/.test(text)) this.movesUntil = Date.now() + 30_000;
    this.outbox.send(this.shown, text, files);
    this.toEnd();
  }

  async commands() {
    this.known_commands ??= this.page.get(this.at("commands")).catch(() => {
      this.known_commands = null; // asked for again with the next letter
      return [];
    });
    return this.known_commands;
  }

  // ── what entries and questions do ──────────────────────────────────────

  async tap(data, more = {}) {
    const result = await this.page.post(this.at("taps"), { data, ...more });
    if (!result.done) this.page.announce(result.text);
    return result;
  }

  async skip(number) {
    await this.attempt(() => this.page.post(this.at("messages"), { text: "skip", question: number }));
  }

  focus() {
    this.composer.focus();
  }

  async output(number) {
    return this.attempt(async () => (await this.page.get(this.at(`outputs/${number}`))).text);
  }

  download(item, entry) {
    return this.files.download(this.at(`files/${item.n}`), item, entry);
  }

  picture(item, entry) {
    return this.files.picture(this.at(`files/${item.n}`), item, entry);
  }

  export() {
    return this.attempt(async () => {
      const response = await this.page.request(this.at("export"));
      this.files.save(await response.blob(), `conversation-${this.shown}.html`);
    });
  }

  notifyButton() {
    const made = this.page.button("Notify me", async () => tell(await Notification.requestPermission()), { class: "notify" });
    function tell(answer) {
      if (answer !== "default") made.textContent = answer === "granted" ? "You are notified" : "Notices are blocked";
      made.disabled = answer !== "default";
    }
    tell(Notification.permission);
    return made;
  }

  // ── scrolling ───────────────────────────────────────────────

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
