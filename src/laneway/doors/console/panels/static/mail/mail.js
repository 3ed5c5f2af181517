// Team mail: teams, members, one inbox, and a message to be sent. Nothing is marked as read.

import { attempt, badge, busy, count, fill, reader, refill, time, views } from "/static/sessions/kit.js";

let lastSender = "";

export async function mount(main, page) {
  const { el } = page;
  const at = (...path) => `/api/mail/${path.map(encodeURIComponent).join("/")}`;
  const link = (...path) => `#/mail/${path.map(encodeURIComponent).join("/")}`;

  async function team(body, [wanted, name]) {
    const about = await page.get("/api/mail");
    const current = wanted ?? about.team;
    const members = el("ul", { class: "cards", "aria-label": "Members" });
    const inbox = el("div", {}, !name && el("p", { class: "soft" }, "Choose a member to read the inbox: nothing in it is marked as read."));
    const teams = el("select", { id: "team", on: { change: ({ target }) => page.go("mail", target.value) } },
      [...new Set([...about.teams, current])].map((each) => el("option", { value: each, selected: each === current }, each)));
    fill(body, el("h1", {}, "Team mail"), el("p", {}, el("label", { for: "team" }, "Team "), teams),
      el("div", { class: "columns" }, el("div", {}, el("h2", {}, "Members"), members), el("div", {}, compose(current, about.me, name), inbox)));
    page.title(name ? `Inbox of ${name}` : "Mail");
    const read = reader(body, async () => {
      const told = await page.get(at(current, "members"));
      refill(members, told.members.map((row) => member(current, row, name)));
      if (!told.members.length) fill(members, el("li", { class: "soft" }, "Nobody is in this team yet."));
      if (name) tell(await page.get(at(current, "inboxes", name)));
    });
    function tell({ messages, older, problems }) {
      const unread = messages.filter((row) => !row.read).length;
      fill(inbox, el("h2", {}, `Inbox of ${name}`), problems.map((text) => el("p", { class: "warn" }, text)),
        el("p", { class: "soft small" }, messages.length ? `${count(messages.length, "message")}, ${unread} unread` : "No mail."),
        messages.map(message), older > 0 && el("p", { class: "soft" }, `${count(older, "older one is", "older ones are")} not shown.`));
    }
    const off = [page.on("mail", ({ topic }) => { if (topic === "changed") read(); }), page.onReset(read)];
    await read();
    return { close() { for (const each of off) each(); } };
  }

  function member(current, row, name) {
    const state = row.is_gone ? "gone" : row.is_active === true ? "busy" : row.is_active === false ? "idle" : "";
    const model = row.model === "unknown" ? "" : row.model;
    return el("li", { class: row.name === name ? "card chosen" : "card" },
      el("p", {}, el("a", { href: link(current, row.name), class: "name", "aria-current": row.name === name ? "true" : null }, row.name), " ",
        state && badge(state), row.is_lead && badge("lead"), row.unread > 0 && el("strong", {}, ` ${row.unread} unread`)),
      el("p", { class: "soft small" }, [row.type, model, row.is_member ? "" : "not in the team"].filter(Boolean).join(" · ")),
      row.cwd && el("p", { class: "soft small" }, row.cwd), row.problem && el("p", { class: "warn small" }, row.problem));
  }

  function message(row) {
    return el("article", { class: row.read ? "message" : "message unread", "aria-label": `From ${row.from}` },
      el("p", { class: "small" }, el("strong", {}, row.from), row.source_team && ` of ${row.source_team}`, " · ", time(row.timestamp) || row.timestamp,
        row.priority && row.priority !== "normal" && [" ", badge(row.priority)], row.read ? " · read" : " · unread"),
      row.summary && el("p", {}, el("strong", {}, row.summary)), el("div", { class: "words" }, row.text));
  }

  function compose(current, me, to) {
    const field = (id, label, node) => el("div", { class: "field" }, el("label", { for: id }, label), node);
    const sender = el("input", { id: "sender", required: true, value: lastSender || me || "", autocomplete: "off" });
    const recipient = el("input", { id: "recipient", required: true, value: to ?? "", autocomplete: "off" });
    const priority = el("select", { id: "priority" }, ["normal", "urgent", "low"].map((each) => el("option", { value: each }, each)));
    const text = el("textarea", { id: "text", required: true, rows: "3" });
    const send = el("button", { class: "primary" }, "Send");
    const outcome = el("p", { role: "status", class: "good" });
    async function submit(event) {
      event.preventDefault();
      fill(outcome);
      await busy(send, () => attempt(page, async () => {
        lastSender = sender.value.trim();
        const told = await page.post(at(current, "send"), { sender: lastSender, to: recipient.value.trim(), text: text.value, priority: priority.value });
        fill(outcome, [told.text, ...(told.notes ?? [])].join(" "));
        text.value = "";
      }));
    }
    const form = el("form", { class: "send", on: { submit } },
      el("div", { class: "row" }, field("sender", "From (a name that nobody else holds)", sender), field("recipient", "To (a member, or * for all)", recipient), field("priority", "Priority", priority)),
      field("text", "Message", text), el("p", {}, send), outcome);
    return el("details", { class: "write", open: !to }, el("summary", {}, to ? `Write to ${to}` : "Write a message"), form);
  }

  return views(page, main, team);
}
