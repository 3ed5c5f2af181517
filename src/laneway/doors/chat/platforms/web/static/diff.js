// Diffs of files, side by side; on a narrow screen one below the other (chat.css).

const SIGNS = { "-": "removed", "+": "added", "~": "changed", "@": "hunk", " ": "same" };

function cell(page, number, text, side, marked) {
  return [
    page.el("td", { class: `line ${side}` }, number === null ? "" : String(number)),
    page.el("td", { class: `code ${side}${marked ? " marked" : ""}` }, text),
  ];
}

// `sides` are those that have anything: a new file has no left.
function row(page, [sign, oldNumber, oldText, newNumber, newText], sides) {
  if (sign === "@") {
    return page.el("tr", { class: "hunk" }, page.el("td", { colspan: 2 * sides.length }, oldText ? `⋯ ${oldText}` : "⋯"));
  }
  const cells = {
    old: () => cell(page, oldNumber, oldText, "old", sign === "-" || sign === "~"),
    new: () => cell(page, newNumber, newText, "new", sign === "+" || sign === "~"),
  };
  return page.el("tr", { class: SIGNS[sign] }, sides.map((side) => cells[side]()));
}

function sidesOf(rows) {
  const lines = rows.filter(([sign]) => sign !== "@");
  if (lines.length && lines.every(([sign]) => sign === "+")) return ["new"];
  return lines.length && lines.every(([sign]) => sign === "-") ? ["old"] : ["old", "new"];
}

export function counts(diff) {
  const added = diff.rows.filter(([sign]) => sign === "+" || sign === "~").length;
  const removed = diff.rows.filter(([sign]) => sign === "-" || sign === "~").length;
  return `+${added} −${removed}`;
}

export function diffTable(page, diff) {
  const name = diff.move_path ? `${diff.path} → ${diff.move_path}` : diff.path;
  const sides = sidesOf(diff.rows);
  const order = { old: "all of it is removed", new: "all of it is new" }[sides.length === 1 ? sides[0] : ""] ?? "before on the left, after on the right";
  const table = page.el("table", { class: "diff" },
    page.el("caption", { class: "unseen" }, `Changes of ${name}: ${order}`),
    page.el("colgroup", {}, sides.map(() => ["line", ""].map((kind) => page.el("col", { class: kind })))),
    page.el("tbody", {}, diff.rows.map((each) => row(page, each, sides))));
  return page.el("div", { class: "file-diff" },
    page.el("div", { class: "file-name" }, page.el("code", {}, name), ` ${counts(diff)}`),
    page.el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Changes of ${name}` }, table),
    diff.left_out > 0 && page.el("p", { class: "soft small" }, `${diff.left_out} more lines are not shown here.`));
}

export function foldedDiffs(page, diffs, open = false) {
  if (!diffs.length) return null;
  const names = diffs.map((diff) => `${diff.path} (${counts(diff)})`).slice(0, 3).join(", ");
  const more = diffs.length > 3 ? ` and ${diffs.length - 3} more` : "";
  return page.el("details", { class: "diffs", open },
    page.el("summary", {}, `Changes: ${names}${more}`), diffs.map((diff) => diffTable(page, diff)));
}
