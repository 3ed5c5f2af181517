// The checks of `laneway doctor`: run when somebody asks.

import { attempt, badge, busy, reader } from "/static/sessions/kit.js";

export async function mount(main, page) {
  const { el, button } = page;
  const state = el("p", { role: "status" });
  const checks = el("ul", { class: "cards", "aria-label": "Checks" });
  const start = button("Run the checks", () => busy(start, () => attempt(page, async () => tell(await page.post("/api/health/run")))), { class: "primary" });
  main.append(el("div", { class: "panel" }, el("h1", {}, "Health"), el("p", {}, start), state, checks));

  function tell(told) {
    const ended = told.ended_at ? ["Checked at ", page.clock(told.ended_at), "."] : ["Not checked yet: it takes some seconds, changes nothing and asks no model."];
    state.replaceChildren(...(told.problem ? [told.problem] : told.is_running ? [`${told.doing} …`] : ended));
    state.className = told.problem ? "bad" : told.is_running ? "working" : "soft";
    checks.replaceChildren(...told.checks.map((check) => el("li", { class: "card" },
      el("p", {}, badge(check.severity), " ", el("strong", {}, check.name)), el("p", {}, check.message), check.remedy && el("p", { class: "soft" }, check.remedy))));
  }

  const read = reader(page, async () => tell(await page.get("/api/health")));
  const off = [page.on("health", () => read()), page.onReset(read)];
  await read();
  return { close() { for (const each of off) each(); } };
}
