// One open question of a session: what a person needs to decide, a form if one is asked for, and the choices.

import { el, button } from "/static/page/dom.js";
import { busy, code, diff } from "./kit.js";

let forms = 0;

function input(field, id) {
  if (field.kind === "boolean") return el("input", { type: "checkbox", id, checked: field.default === true });
  const kind = field.is_secret ? "password" : field.kind === "number" || field.kind === "integer" ? "number" : "text";
  return el("input", { type: kind, id, autocomplete: "off", value: field.default ?? "", step: field.kind === "number" ? "any" : undefined });
}

function value(field, node) {
  if (field.kind === "boolean") return node.checked;
  if (field.kind === "number" || field.kind === "integer") return node.value === "" ? null : Number(node.value);
  return node.value;
}

// The node of a field, and how its value is read into what is sent.
function control(field) {
  forms += 1;
  const id = `field-${forms}`;
  if (!field.options.length) {
    const node = input(field, id);
    return {
      node: el("div", { class: "field" }, el("label", { for: id }, field.title), field.text && el("p", { class: "soft small" }, field.text), node),
      read: (content) => { content[field.name] = value(field, node); },
    };
  }
  const many = field.kind === "array";
  const chosen = field.options.map((option, at) => el("input", { type: many ? "checkbox" : "radio", name: id, id: `${id}-${at}`, value: option.value }));
  const own = field.takes_free_text && el("input", { type: "text", id: `${id}-own`, autocomplete: "off" });
  return {
    node: el("fieldset", {}, el("legend", {}, field.title), field.text && el("p", { class: "soft small" }, field.text),
      field.options.map((option, at) => el("div", { class: "option" }, chosen[at], el("label", { for: `${id}-${at}` }, option.title),
        option.text && el("span", { class: "soft small" }, ` ${option.text}`))),
      own && el("div", { class: "field" }, el("label", { for: `${id}-own` }, "Something else, or a remark"), own)),
    read: (content) => {
      const values = chosen.filter((node) => node.checked).map((node) => node.value);
      content[field.name] = many ? values : values[0] ?? null;
      if (own && own.value) content[`${field.name}_note`] = own.value;
    },
  };
}

// `answer(filled)` sends it; the question goes away when the server says that it is settled.
export function question(view, answer) {
  const controls = view.fields.map(control);
  const takesWords = view.choices.some((choice) => choice.takes_words);
  forms += 1;
  const words = takesWords && el("input", { type: "text", id: `words-${forms}`, autocomplete: "off" });
  const node = el("section", { class: "question", "aria-label": `Question: ${view.title}` },
    el("h2", {}, `${view.engine} asks: ${view.title}`),
    view.message && view.message !== view.title && el("p", {}, view.message),
    view.code && code(view.code, "What it is about"),
    view.cwd && el("p", { class: "soft small" }, `In ${view.cwd}`),
    view.url && el("p", {}, `The address is ${view.url}`),
    view.notes.map((note) => el("p", { class: "small" }, note)),
    view.changes.map((change) => el("details", { open: view.changes.length === 1 },
      el("summary", {}, `${change.kind} ${change.path}`), diff(change.diff, `Changes of ${change.path}`))),
    !view.can_fill && el("p", { class: "warn" }, "This page cannot show its form: answer where the session was started."),
    controls.map((each) => each.node),
    words && el("div", { class: "field" }, el("label", { for: `words-${forms}` }, "With a no: why not, or what instead"), words),
    el("p", { class: "choices" }, view.choices.map((choice) => {
      const isYes = ["once", "session", "always"].includes(choice.grants);
      const made = button(choice.label, () => busy(made, () => {
        const content = {};
        for (const each of controls) each.read(content);
        return answer({ question_id: view.question_id, choice_id: choice.choice_id,
          content: isYes ? content : {}, words: choice.takes_words && words ? words.value : "" });
      }), { class: isYes ? (choice.grants === "once" ? "yes" : "") : "no" });
      return made;
    })));
  return node;
}
