// Live sessions of every front end on this machine: a list, and one that is watched.

import { attempt, badge, code, facts, number, reader, askingButton } from "./kit.js";
import { question } from "./question.js";

const ASK_MS = 30_000;
const DOORS = { mcp: "MCP server", "mcp-server": "codex mcp-server", acp: "editor", chat: "chat", ask: "laneway ask" };

export async function mount(main, page) {
  const { el } = page;
  const root = el("div", { class: "panel" });
  main.append(root);
  let view = null;
  let waiting = new Map();

  async function list() {
    const rows = el("ul", { class: "cards", "aria-label": "Live sessions" });
    const problems = el("div", {});
    root.replaceChildren(el("h1", {}, "Live sessions"), problems, rows);
    const read = reader(page, async () => {
      const { sessions, problems: silent } = await page.get("/api/sessions");
      problems.replaceChildren(...silent.map((each) => el("p", { class: "warn small" }, `Process ${each.pid}: ${each.why}`)));
      rows.replaceChildren(...sessions.map(card));
      if (!sessions.length) rows.append(el("li", { class: "soft" }, "Nothing runs. `laneway mcp`, an editor, chat or `laneway ask` would show here."));
      tell(sessions);
    });
    const off = [page.on("sessions", ({ topic }) => { if (topic === "changed") read(); }), page.onReset(read)];
    await read();
    return { close() { for (const each of off) each(); } };
  }

  function card(row) {
    const waits = row.open_questions > 0;
    return el("li", { class: "card" },
      el("p", {}, el("a", { href: `#/sessions/${encodeURIComponent(row.agent_id)}`, class: "name" }, row.name || row.agent_id), " ",
        badge(waits ? "waits" : row.state), waits && el("span", { class: "warn" }, " for an answer")),
      el("p", { class: "soft small" }, [DOORS[row.door] ?? row.door, row.engine, row.team && `team ${row.team}`, row.cwd, row.branch]
        .filter(Boolean).join(" · ")),
      el("p", { class: "soft small" }, `${row.turns} turns · ${number(row.tokens)} tokens · process ${row.pid}`),
      row.last_text && el("blockquote", { class: "last" }, row.last_text));
  }

  // Says, and notifies, only what is new since the last look.
  function tell(sessions) {
    const now = new Map(sessions.map((row) => [row.agent_id, row]));
    for (const [id, row] of now) {
      const before = waiting.get(id);
      if (before && row.open_questions > before.open_questions) {
        page.announce(`${row.name || id} waits for an answer`);
        page.notify(`${row.name || id} asks`, row.cwd, id, () => page.go("sessions", id));
      }
    }
    waiting = now;
  }

  async function watch(agentId) {
    const head = el("div", {});
    const questions = el("div", { class: "questions" });
    const log = el("ol", { class: "log", "aria-label": "What happens" });
    const stop = askingButton("Stop its turn", () => attempt(page, async () => {
      const { is_stopped: isStopped } = await page.post(`/api/sessions/${encodeURIComponent(agentId)}/stop`);
      page.announce(isStopped ? "It was stopped" : "It was told to stop, and has not done so yet");
    }), { class: "no" });
    root.replaceChildren(el("p", {}, el("a", { href: "#/sessions" }, "All sessions")), head, el("p", {}, stop), questions, log);
    const shown = new Map();
    const asked = new Map();
    let version = 0;
    let run = "";
    let isFirst = true;

    const read = reader(page, async () => {
      const at = `/api/sessions/${encodeURIComponent(agentId)}/watch`;
      let told;
      try {
        told = await page.get(`${at}?after=${version}&watch=${run}`);
      } catch (problem) {
        if (problem.status !== 404) throw problem;
        stop.disabled = true;
        if (isFirst) head.replaceChildren(el("h1", {}, "This session has ended"));
        return;
      }
      if (told.watch !== run) {
        log.replaceChildren();
        shown.clear();
      }
      run = told.watch;
      version = told.version;
      header(told);
      for (const item of told.items) put(item);
      for (const [key, node] of shown) if (key < told.first) { node.remove(); shown.delete(key); }
      ask(told.questions);
      isFirst = false;
    });

    function header({ session, is_closed: isClosed }) {
      stop.disabled = isClosed;
      if (!session) return;
      head.replaceChildren(el("h1", {}, session.name || session.agent_id, " ", isClosed && badge("closed")),
        facts([["front end", DOORS[session.door] ?? session.door], ["engine", session.engine], ["model", session.model],
          ["team", session.team], ["folder", session.cwd], ["branch", session.branch], ["process", session.pid],
          ["session", session.agent_id]]));
    }

    function put(item) {
      const follows = root.parentElement.scrollHeight - root.parentElement.scrollTop - root.parentElement.clientHeight < 80;
      const node = row(item);
      const before = shown.get(item.key);
      if (before) {
        if (before.querySelector("details")?.open) node.querySelector("details")?.setAttribute("open", "");
        before.replaceWith(node);
      } else log.append(node);
      shown.set(item.key, node);
      if (follows && !isFirst) node.scrollIntoView({ block: "end" });
    }

    function row({ kind, title, text, status }) {
      if (kind === "turn") return el("li", { class: "turn" }, title);
      if (kind === "notice") return el("li", { class: `notice ${status === "error" ? "bad" : status === "warning" ? "warn" : "soft"}` }, text);
      if (kind === "activity" || kind === "thought") {
        const name = kind === "thought" ? "Thought" : title;
        return el("li", { class: kind }, el("details", {}, el("summary", {}, name, " ", status && badge(status)), text && code(text, name)));
      }
      return el("li", { class: kind }, title && el("p", { class: "soft small" }, title), el("div", { class: "words" }, text));
    }

    function ask(views) {
      const open = new Set(views.map((each) => each.question_id));
      for (const [id, node] of asked) if (!open.has(id)) { node.remove(); asked.delete(id); }
      for (const each of views) {
        if (asked.has(each.question_id)) continue;
        const node = question(each, (filled) => attempt(page, () => page.post(`/api/sessions/${encodeURIComponent(agentId)}/answer`, filled)));
        asked.set(each.question_id, node);
        questions.append(node);
        page.announce(`${each.engine} asks: ${each.title}`);
        if (!isFirst) page.notify(`${each.engine} asks`, each.title, each.question_id);
      }
    }

    const off = [
      page.on("sessions", ({ topic, data }) => { if (topic === "watch" && data.agent_id === agentId) read(); }),
      page.onReset(read),
    ];
    const timer = setInterval(read, ASK_MS);
    await read();
    return { close() { clearInterval(timer); for (const each of off) each(); } };
  }

  return {
    async show([agentId] = []) {
      view?.close();
      view = null;
      view = await (agentId ? watch(agentId) : list());
    },
    close() { view?.close(); },
  };
}
