// The events of one job, as they come: a tool call and its result are one line.

import { el } from "/static/page/dom.js";
import { badge, code, time } from "/static/sessions/kit.js";

const PROGRESS = { "thread.started": "Thread started", "turn.started": "Turn started", "turn.completed": "Turn completed", reasoning: "Thought", todo_list: "Plan" };

export class Timeline {
  constructor() {
    this.node = el("ol", { class: "log timeline", "aria-label": "Events" });
    this.calls = new Map();
  }

  add({ type, content, timestamp }) {
    const said = content !== null && typeof content === "object" ? content : { text: content };
    const line = (tone, ...parts) => el("li", { class: tone }, time(timestamp) || el("span", {}), el("div", {}, parts));
    if (type === "tool_call" || type === "tool_result") {
      const node = line("", tool(said, type === "tool_result"));
      const before = this.calls.get(said.id);
      if (before) before.lastChild.replaceWith(node.lastChild);
      else this.node.append(node);
      if (said.id && !before) this.calls.set(said.id, node);
      return;
    }
    const text = String(said.text ?? said.message ?? "");
    if (type === "message") this.node.append(line("", el("div", { class: "words" }, text)));
    else if (type === "error") this.node.append(line("bad", el("div", { class: "words" }, text || "Error")));
    else if (type === "final") this.node.append(line("", "Ended: ", badge(String(said.status ?? "").replaceAll("_", " "))));
    else {
      const kind = PROGRESS[said.kind] ?? String(said.kind ?? type);
      const items = (said.items ?? []).map((each) => `${each.completed ? "✓" : "·"} ${each.text}`).join("\n");
      this.node.append(line("soft", kind, (text || items) && el("div", { class: "words" }, text || items)));
    }
  }
}

function tool(said, isOver) {
  const changes = Array.isArray(said.changes) ? said.changes.map((each) => `${each.kind?.type ?? each.kind ?? "changed"} ${each.path}`).join(", ") : "";
  const what = said.command ?? said.query ?? (changes || [said.server, said.name].filter(Boolean).join(" · "));
  const status = isOver ? said.status ?? "completed" : "running";
  const shown = said.output ?? (said.arguments || said.result || said.error ? JSON.stringify({ arguments: said.arguments, result: said.result, error: said.error }, null, 2) : "");
  return [el("span", { class: "soft" }, `${said.tool} `), el("code", {}, String(what)), " ", badge(said.exitCode ? `${status}, exit code ${said.exitCode}` : status),
    shown && el("details", {}, el("summary", {}, said.output !== undefined ? "Output" : "Details"), code(String(shown), said.output !== undefined ? "Output" : "Details"))];
}
