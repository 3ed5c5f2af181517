// What one or two jobs made of a path: a difference, or two of them and the places in dispute, three-way.

import { el } from "/static/page/dom.js";
import { count, diff, threeWay } from "/static/sessions/kit.js";

const MAX_TITLE = 48;

// `heading` is the element of its name.
export function difference(each, titles, heading = "h3") {
  const names = each.jobs.map((job) => {
    const title = titles.get(job) ?? "";
    return `${job.slice(-8)} ${title.length > MAX_TITLE ? `${title.slice(0, MAX_TITLE)}…` : title}`.trim();
  });
  return el("div", { class: "difference", role: "group", "aria-label": `Difference of ${each.path}` }, el(heading, {}, el("code", {}, each.path)),
    each.isBinary || each.is_binary ? el("p", { class: "soft" }, "It is no text: there is nothing to show.")
      : "diff" in each || names.length === 1 ? one(each, names) : two(each, names),
    each.is_cut && el("p", { class: "warn small" }, "It is longer: this is its beginning."));
}

function one(each, names) {
  return [names.length > 1 && el("p", { class: "soft small" }, "Which of the two made which change is not known."),
    diff(each.diff ?? "", `What ${names.join(" and ")} changed`)];
}

function two(each, names) {
  const sides = el("div", { class: "pair" }, ["one", "other"].map((side, index) => el("div", {}, el("p", { class: "small" }, names[index]),
    each[side] ? diff(each[side], `What ${names[index]} changed`) : el("p", { class: "soft" }, "Changed nothing that is left."))));
  if (!each.conflicts) return [el("p", { class: "soft" }, "Both fit together: nothing is in dispute."), sides];
  return [el("p", { class: "bad" }, each.conflicts === 1 ? "One place is in dispute:" : `${count(each.conflicts, "place")} are in dispute:`),
    threeWay(each.merged ?? "", names), el("details", {}, el("summary", {}, "All that each of them changed"), sides)];
}
