// The checks of `laneway doctor`: run when somebody asks. What needs a person comes first.

import { badge, busy, attempt, count, fill, reader, refill } from "/static/sessions/kit.js";

const ORDER = ["error", "warning", "note", "ok"];

export async function mount(main, page) {
  const { el, button, sentence } = page;
  const state = el("p", { role: "status" });
  const checks = el("ul", { class: "cards", "aria-label": "Checks" });
  const start = button("Run the checks", () => busy(start, () => attempt(page, async () => tell(await page.post("/api/health/run")))), { class: "primary" });
  const root = el("div", { class: "panel" }, el("h1", {}, "Health"), el("p", {}, start), state, checks);
  main.append(root);

  function tell(told) {
    const rank = (check) => (ORDER.includes(check.severity) ? ORDER.indexOf(check.severity) : 0);
    const sorted = [...told.checks].sort((one, other) => rank(one) - rank(other));
    const found = ORDER.map((each) => [each, told.checks.filter((check) => check.severity === each).length]).filter(([, many]) => many);
    const outcome = found.map(([each, many]) => (each === "ok" ? `${many} ok` : count(many, each))).join(", ");
    fill(state, told.problem ? sentence(told.problem) : told.is_running ? sentence(`${told.doing || "running"} …`) : told.ended_at
      ? ["Checked at ", page.clock(told.ended_at), `: ${outcome}.`]
      : "Not checked yet: it takes some seconds, changes nothing and asks no model.");
    state.className = told.problem ? "bad" : told.is_running ? "working" : "soft";
    refill(checks, sorted.map((check) => el("li", { class: `card ${check.severity}` },
      el("p", {}, badge(check.severity), " ", el("strong", {}, check.name)), el("p", {}, sentence(check.message)), check.remedy && el("p", { class: "soft" }, sentence(check.remedy)))));
  }

  const read = reader(root, async () => tell(await page.get("/api/health")));
  const off = [page.on("health", () => read()), page.onReset(read)];
  await read();
  return { close() { for (const each of off) each(); } };
}
