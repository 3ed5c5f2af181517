// Builds elements. Foreign text only ever becomes text nodes: nothing here parses HTML.

export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [kind, heard] of Object.entries(value)) node.addEventListener(kind, heard);
    else if (name === "class") node.className = value;
    else if (name === "value" || name === "checked" || name === "disabled" || name === "hidden") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export function button(label, pressed, props = {}) {
  return el("button", { type: "button", ...props, on: { click: pressed } }, label);
}

// A sentence of ours, in which commands stand between backticks.
export function sentence(text) {
  return text.split(/`([^`]+)`/).map((part, at) => (at % 2 ? el("code", {}, part) : part));
}

// A picture of lines, 24 by 24. No font has to have it.
export function icon(lines) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  for (const [name, value] of [["viewBox", "0 0 24 24"], ["class", "icon"], ["aria-hidden", "true"], ["focusable", "false"]]) {
    svg.setAttribute(name, value);
  }
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", lines);
  svg.append(path);
  return svg;
}

const TAGS = new Set(["p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li", "a",
  "h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td", "span", "div"]);
const SAFE_LINK = /^(https?:|mailto:)/i;

// Markdown comes from the server as a tree: a text, or [tag, attributes, ...children].
export function tree(node) {
  if (typeof node === "string") return document.createTextNode(node);
  const [tag, attributes, ...children] = node;
  const made = document.createElement(TAGS.has(tag) ? tag : "span");
  if (tag === "a" && SAFE_LINK.test(attributes?.href ?? "")) {
    made.href = attributes.href;
    made.target = "_blank";
    made.rel = "noopener noreferrer";
    made.title = attributes.href;
  }
  if (tag === "ol" && Number.isInteger(attributes?.start)) made.start = attributes.start;
  if (attributes?.class && /^[a-z][a-z-]*$/.test(attributes.class)) made.className = attributes.class;
  if (tag === "pre") made.tabIndex = 0;
  made.append(...children.map(tree));
  return made;
}

export function trees(nodes) {
  const made = document.createDocumentFragment();
  made.append(...nodes.map(tree));
  return made;
}

export function clock(seconds) {
  const at = new Date(seconds * 1000);
  const time = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const today = new Date().toDateString() === at.toDateString();
  const shown = today ? time : `${at.toLocaleDateString([], { day: "numeric", month: "short" })} ${time}`;
  return el("time", { datetime: at.toISOString(), title: at.toLocaleString() }, shown);
}

export function size(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 * 1024) return `${Math.round(bytes / 1024)} kB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}

const announcer = document.getElementById("announcer");
// Said by a screen reader, once it is done with what it reads now.
export function announce(text) {
  announcer.textContent = "";
  setTimeout(() => { announcer.textContent = text; }, 50);
}
