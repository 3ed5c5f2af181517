// Open questions: a card each, with its buttons or its form, above the field for messages.

import { diffTable } from "./diff.js";
import { laneClass } from "./entries.js";

function option(page, field, each, type, id) {
  return page.el("label", { class: "option" },
    page.el("input", { type, name: id, value: each.value, checked: field.default === each.value }), " ", each.title,
    each.text && page.el("span", { class: "soft small" }, ` – ${each.text}`));
}

// One field of a form: its element, and what reads its value into `values`. A hint that repeats `title` is left out.
function control(page, field, id, title) {
  const { el } = page;
  const hint = field.text && field.text !== title && el("p", { class: "soft small", id: `${id}-hint` }, field.text);
  if (field.options.length) {
    const several = field.type === "array";
    const boxes = field.options.map((each) => option(page, field, each, several ? "checkbox" : "radio", id));
    const own = field.free && el("input", { type: "text", "aria-label": `${field.title}: something else`, placeholder: "Something else" });
    return {
      node: el("fieldset", {}, el("legend", {}, field.title), hint, boxes, own && el("div", {}, own)),
      read(values) {
        const chosen = boxes.map((box) => box.firstElementChild).filter((box) => box.checked).map((box) => box.value);
        const words = own ? own.value.trim() : "";
        if (several && chosen.length) values[field.name] = chosen;
        else if (chosen.length) values[field.name] = chosen[0];
        if (words && chosen.length) values[`${field.name}_note`] = words;
        else if (words) values[field.name] = several ? [words] : words;
      },
    };
  }
  const type = field.secret ? "password" : { boolean: "checkbox", number: "number", integer: "number" }[field.type] ?? "text";
  const input = el("input", {
    type, id, autocomplete: "off", required: field.required && type !== "checkbox", step: field.type === "number" ? "any" : null,
    "aria-describedby": hint ? `${id}-hint` : null,
  });
  if (type === "checkbox") input.checked = field.default === true;
  else if (field.default !== null) input.value = String(field.default);
  return {
    node: el("div", { class: "field" }, el("label", { for: id }, field.title), hint, input),
    read(values) {
      if (type === "checkbox") values[field.name] = input.checked;
      else if (input.value !== "") values[field.name] = type === "number" ? Number(input.value) : input.value;
    },
    forget() { if (field.secret) input.value = ""; },
  };
}

export class Questions {
  // `act.tap(data, {words, values})` gives what the server says; `act.skip(number)` gives no answer.
  constructor(page, root, act) {
    this.page = page;
    this.root = root;
    this.act = act;
    this.cards = new Map();
  }

  clear() {
    this.cards.clear();
    this.root.replaceChildren();
    this.root.hidden = true;
  }

  // Of the state: exactly these are open.
  set(questions) {
    for (const number of [...this.cards.keys()]) {
      if (!questions.some((each) => each.number === number)) this.over(number);
    }
    for (const each of questions) this.ask(each);
  }

  ask(question) {
    if (this.cards.has(question.number)) return;
    const card = this.card(question);
    this.cards.set(question.number, card);
    this.root.append(card);
    this.root.hidden = false;
  }

  over(number) {
    const card = this.cards.get(number);
    const held = card?.contains(document.activeElement);
    card?.remove();
    this.cards.delete(number);
    this.root.hidden = this.cards.size === 0;
    if (held) this.act.focus();
  }

  isOpen(number) {
    return this.cards.has(number);
  }

  card(question) {
    const { el } = this.page;
    const id = `question-${question.number}`;
    const said = el("p", { class: "bad", role: "status" });
    let isSending = false;
    // The buttons stay: one that is disabled would lose the focus.
    const send = async (data, more) => {
      if (isSending) return;
      isSending = true;
      card.setAttribute("aria-busy", "true");
      try {
        const result = await this.act.tap(data, more);
        said.textContent = result.done ? "" : result.text;
      } catch (problem) {
        said.textContent = problem.message;
      }
      isSending = false;
      card.removeAttribute("aria-busy");
    };
    const card = el("section", { class: `question ${laneClass(question.lane)}`, "aria-labelledby": id },
      el("h2", { id }, `${question.asker} asks (#${question.number})`),
      el("p", { class: "title" }, question.what === "command" ? "Run this command?" : question.what === "tool" ? el("code", {}, question.title) : question.title),
      this.page.trees(question.explanation), question.diffs.map((diff) => diffTable(this.page, diff)),
      question.url && el("p", {}, el("a", { href: question.url, target: "_blank", rel: "noopener noreferrer" }, question.url)),
      question.is_form ? this.form(question, id, send) : this.choices(question, id, send), said);
    return card;
  }

  choices(question, id, send) {
    const { el, button } = this.page;
    const words = question.takes_words.length > 0
      && el("input", { type: "text", id: `${id}-words`, placeholder: "Why not, or what instead (for a no)", "aria-label": "Words that go with a no" });
    const buttons = question.buttons.map((each) =>
      button(each.label, () => send(each.data, { words: words && each.style === "no" ? words.value : "" }), { class: each.style }));
    return el("div", { class: "choices" }, words && el("div", { class: "field" }, words), el("p", { class: "buttons" }, buttons));
  }

  form(question, id, send) {
    const { el, button } = this.page;
    const controls = question.fields.map((field, at) => control(this.page, field, `${id}-${at}`, question.title));
    return el("form", {
      on: {
        async submit(event) {
          event.preventDefault();
          const values = {};
          for (const each of controls) each.read(values);
          await send(`q:${question.number}`, { values });
          for (const each of controls) each.forget?.();
        },
      },
    }, controls.map((each) => each.node),
    el("p", { class: "buttons" }, el("button", { class: "primary" }, "Answer"), button("Skip", () => this.act.skip(question.number))));
  }
}
