// Team mail: teams, members, one inbox, and a message to be sent. Nothing is marked as read.

import { attempt, badge, busy, reader } from "/static/sessions/kit.js";

export async function mount(main, page) {
  const { el, button } = page;
  const root = el("div", { class: "panel" });
  main.append(root);
  let view = null;
  const at = (...path) => `/api/mail/${path.map(encodeURIComponent).join("/")}`;

  async function team(wanted, name) {
    const about = await page.get("/api/mail");
    const current = wanted ?? about.team;
    const members = el("ul", { class: "cards", "aria-label": "Members" });
    const inbox = el("div", { "aria-live": "off" });
    const teams = el("select", { id: "team", on: { change: ({ target }) => page.go("mail", target.value) } },
      [...new Set([...about.teams, current])].map((each) => el("option", { value: each, selected: each === current }, each)));
    root.replaceChildren(el("h1", {}, "Team mail"), el("p", {}, el("label", { for: "team" }, "Team "), teams),
      el("div", { class: "columns" }, el("div", {}, el("h2", {}, "Members"), members), el("div", {}, compose(current, about.me, name), inbox)));
    const read = reader(page, async () => {
      const told = await page.get(at(current, "members"));
      members.replaceChildren(...told.members.map((row) => member(current, row, name)));
      if (!told.members.length) members.append(el("li", { class: "soft" }, "Nobody is in this team yet."));
      if (name) tell(await page.get(at(current, "inboxes", name)));
    });
    function tell({ messages, older, problems }) {
      inbox.replaceChildren(el("h2", {}, `Inbox of ${name}`), ...problems.map((text) => el("p", { class: "warn" }, text)),
        ...messages.map(message), messages.length ? "" : el("p", { class: "soft" }, "No mail."),
        older ? el("p", { class: "soft" }, `${older} older ones are not shown.`) : "");
    }
    const off = [page.on("mail", ({ topic }) => { if (topic === "changed") read(); }), page.onReset(read)];
    await read();
    return { close() { for (const each of off) each(); } };
  }

  function member(current, row, name) {
    const state = row.is_gone ? "gone" : row.is_active === true ? "busy" : row.is_active === false ? "idle" : "";
    return el("li", { class: "card" },
      el("p", {}, el("a", { href: `#/mail/${encodeURIComponent(current)}/${encodeURIComponent(row.name)}`, class: "name", "aria-current": row.name === name ? "true" : null }, row.name), " ",
        state && badge(state), row.is_lead && badge("lead"), row.unread > 0 && el("strong", {}, ` ${row.unread} unread`)),
      el("p", { class: "soft small" }, [row.type, row.model, row.cwd, row.is_member ? "" : "not in the team"].filter(Boolean).join(" · ")),
      row.problem && el("p", { class: "warn small" }, row.problem));
  }

  function message(row) {
    return el("article", { class: row.read ? "message" : "message unread" },
      el("p", { class: "small" }, el("strong", {}, row.from), row.source_team ? ` of ${row.source_team}` : "", " · ",
        row.timestamp ?? "", row.priority ? ` · ${row.priority}` : "", row.read ? " · read" : " · unread"),
      row.summary && el("p", {}, row.summary), el("div", { class: "words" }, row.text));
  }

  function compose(current, me, to) {
    const field = (id, label, node) => el("div", { class: "field" }, el("label", { for: id }, label), node);
    const sender = el("input", { id: "sender", required: true, value: me ?? "", autocomplete: "off" });
    const recipient = el("input", { id: "recipient", required: true, value: to ?? "", autocomplete: "off" });
    const priority = el("select", { id: "priority" }, ["normal", "urgent", "low"].map((each) => el("option", { value: each }, each)));
    const text = el("textarea", { id: "text", required: true, rows: "4" });
    const send = el("button", { class: "primary" }, "Send");
    const outcome = el("p", { role: "status", class: "soft" });
    async function submit(event) {
      event.preventDefault();
      await busy(send, () => attempt(page, async () => {
        const told = await page.post(at(current, "send"), { sender: sender.value.trim(), to: recipient.value.trim(), text: text.value, priority: priority.value });
        outcome.textContent = [told.text, ...(told.notes ?? [])].join(" ");
        text.value = "";
      }));
    }
    return el("form", { class: "send", on: { submit } }, el("h2", {}, "Write"),
      field("sender", "From (a name that nobody else holds)", sender), field("recipient", "To (a member, or * for all)", recipient),
      field("priority", "Priority", priority), field("text", "Message", text), el("div", {}, send), outcome);
  }

  return {
    async show([wanted, name] = []) {
      view?.close();
      view = null;
      view = await attempt(page, () => team(wanted, name));
    },
    close() { view?.close(); },
  };
}
