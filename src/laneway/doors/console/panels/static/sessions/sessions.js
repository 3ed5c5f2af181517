// Live sessions of every front end on this machine: a list, and one that is watched.

import { askingButton, attempt, badge, code, count, facts, fill, number, reader, refill, time, views } from "./kit.js";
import { question } from "./question.js";

const ASK_MS = 30_000;
const NEAR_END_PX = 80;
const DOORS = { mcp: "MCP server", "mcp-server": "codex mcp-server", acp: "editor", chat: "chat", ask: "laneway ask" };

export async function mount(main, page) {
  const { el } = page;
  // Sessions of editors and chats have no name.
  const title = (row) => row.name || (row.cwd ? `${row.engine || "Session"} in ${row.cwd.split("/").pop()}` : row.agent_id);
  const at = (agentId, verb) => `/api/sessions/${encodeURIComponent(agentId)}/${verb}`;
  let before = new Map();

  // ── the list ───────────────────────────────────────────────────────────────

  async function list(body) {
    const summary = el("p", { class: "soft" });
    const rows = el("ul", { class: "cards", "aria-label": "Live sessions" });
    const problems = el("div", {});
    fill(body, el("h1", {}, "Live sessions"), summary, problems, rows);
    page.title("Sessions");
    const read = reader(body, async () => {
      const { sessions, problems: silent } = await page.get("/api/sessions");
      const busy = sessions.filter((row) => row.state === "busy").length;
      const waiting = sessions.filter((row) => row.open_questions > 0).length;
      fill(summary, sessions.length ? [count(sessions.length, "session"), `${busy} busy`, waiting && `${waiting} waiting for an answer`].filter(Boolean).join(", ")
        : ["Nothing runs. ", el("code", {}, "laneway mcp"), ", an editor, ", el("code", {}, "laneway chat"), " or ", el("code", {}, "laneway ask"), " would show here."]);
      fill(problems, silent.map((each) => el("p", { class: "warn small" }, `Process ${each.pid}: ${each.why}`)));
      refill(rows, sessions.map(card));
      tell(sessions);
    });
    const off = [page.on("sessions", ({ topic }) => { if (topic === "changed") read(); }), page.onReset(read)];
    await read();
    return { close() { for (const each of off) each(); } };
  }

  function card(row) {
    const waits = row.open_questions > 0;
    return el("li", { class: waits ? "card waits" : "card" },
      el("p", {}, el("a", { href: `#/sessions/${encodeURIComponent(row.agent_id)}`, class: "name" }, title(row)), " ", badge(waits ? "waits" : row.state),
        waits && el("span", { class: "warn" }, " for an answer")),
      el("p", { class: "soft small" }, [DOORS[row.door] ?? row.door, row.name && row.engine, row.model, row.team && `team ${row.team}`].filter(Boolean).join(" · ")),
      el("p", { class: "soft small" }, [row.cwd, row.branch].filter(Boolean).join(" · ")),
      el("p", { class: "soft small" }, `${count(row.turns, "turn")} · ${number(row.tokens)} tokens · process ${row.pid}`, row.last_active && [" · ", time(row.last_active)]),
      row.last_text && el("blockquote", { class: "last" }, row.last_text));
  }

  // Says, and notifies, only what is new since the last look.
  function tell(sessions) {
    for (const row of sessions) {
      const known = before.get(row.agent_id);
      if (known && row.open_questions > known.open_questions) {
        page.announce(`${title(row)} waits for an answer`);
        page.notify(`${title(row)} asks`, row.cwd, row.agent_id, () => page.go("sessions", row.agent_id));
      }
    }
    before = new Map(sessions.map((row) => [row.agent_id, row]));
  }

  // ── one session ────────────────────────────────────────────────────────────

  async function watch(body, agentId) {
    const head = el("div", {});
    const questions = el("div", { class: "open-questions" });
    const earlier = el("div", {});
    const log = el("ol", { class: "happenings", "aria-label": "What happens" });
    const stop = askingButton("Stop its turn", () => attempt(page, async () => {
      const { is_stopped: isStopped } = await page.post(at(agentId, "stop"));
      page.announce(isStopped ? "It was stopped" : "It was told to stop, and has not done so yet");
    }), { class: "no" });
    const actions = el("p", { hidden: true }, stop);
    fill(body, el("p", {}, el("a", { href: "#/sessions" }, "All sessions")), head, actions, questions, earlier, log);
    const shown = new Map();
    const asked = new Map();
    let version = 0;
    let run = "";
    let isFirst = true;
    let headed = "";

    const read = reader(body, async () => {
      let told;
      try {
        told = await page.get(`${at(agentId, "watch")}?after=${version}&watch=${run}`);
      } catch (problem) {
        if (problem.status !== 404) throw problem;
        actions.hidden = true;
        if (isFirst) fill(head, el("h1", {}, "This session has ended"), el("p", { class: "soft" }, "Or there has been none of this name."));
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

    function header({ session, is_closed: isClosed, is_busy: isBusy }) {
      actions.hidden = isClosed || !isBusy;
      if (!session || headed === `${isClosed} ${isBusy}`) return;
      headed = `${isClosed} ${isBusy}`;
      page.title(title(session));
      refill(head, el("h1", {}, title(session), " ", badge(isClosed ? "ended" : isBusy ? "busy" : "idle")),
        facts([["front end", DOORS[session.door] ?? session.door], ["engine", session.engine], ["model", session.model],
          ["team", session.team], ["folder", session.cwd], ["branch", session.branch], ["process", session.pid],
          ["session", session.agent_id]]));
      if (isFirst) fill(earlier, session.last_text && [el("p", { class: "soft small" }, "Its last words before this page began to watch:"), el("blockquote", { class: "last" }, session.last_text)],
        el("p", { class: "soft small" }, "What happens from now on is shown here."));
    }

    function put(item) {
      const follows = main.scrollHeight - main.scrollTop - main.clientHeight < NEAR_END_PX;
      const node = row(item);
      const old = shown.get(item.key);
      if (old) {
        const hadFocus = old.contains(document.activeElement);
        if (old.querySelector("details")?.open) node.querySelector("details")?.setAttribute("open", "");
        old.replaceWith(node);
        if (hadFocus) node.querySelector("summary, pre")?.focus({ preventScroll: true });
      } else log.append(node);
      shown.set(item.key, node);
      if (follows && !isFirst) node.scrollIntoView({ block: "end" });
    }

    function row({ kind, title: name, text, status }) {
      if (kind === "turn") return el("li", { class: "kind-turn" }, name);
      if (kind === "notice") return el("li", { class: `kind-notice ${status === "error" ? "bad" : status === "warning" ? "warn" : "soft"}` }, text);
      if (kind === "activity" || kind === "thought") {
        const line = kind === "thought" ? ["Thought"] : [el("code", {}, name), " ", status && badge(status)];
        if (!text) return el("li", { class: `kind-${kind}` }, line);
        return el("li", { class: `kind-${kind}` }, el("details", {}, el("summary", {}, line), code(text, kind === "thought" ? "Thought" : `Output of ${name}`)));
      }
      return el("li", { class: `kind-${kind}` }, name && el("p", { class: "soft small" }, name), el("div", { class: "words" }, text));
    }

    function ask(open) {
      const ids = new Set(open.map((each) => each.question_id));
      for (const [id, node] of asked) if (!ids.has(id)) { node.remove(); asked.delete(id); }
      for (const each of open) {
        if (asked.has(each.question_id)) continue;
        const node = question(each, (filled) => attempt(page, () => page.post(at(agentId, "answer"), filled)));
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

  return views(page, main, (body, [agentId]) => (agentId ? watch(body, agentId) : list(body)));
}
