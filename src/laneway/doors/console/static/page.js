// The shell: takes the token, shows the parts' navigation, and opens the part that the address names.

import * as dom from "./dom.js";
import * as wire from "./wire.js";

const { el, button } = dom;
const main = document.getElementById("main");
const nav = document.getElementById("parts");
const connection = document.getElementById("connection");
const WORDS = {
  new: "",
  connected: "Connected",
  lost: "Connection lost. What you see stays; Laneway tries again.",
  locked: "The token is not valid any more.",
};

let about = null;
let shown = null;

// What a part's module gets: `mount(root, page)` returns { show(path), close() }.
const page = {
  ...dom,
  ...wire,
  // Goes to a place of a part, as in page.go("chat", "c1").
  go(part, ...rest) {
    location.hash = `#/${[part, ...rest].map(encodeURIComponent).join("/")}`;
  },
  title(text) {
    document.title = text ? `${text} – Laneway` : "Laneway";
  },
  // A sentence about something that did not work, for the person at the page.
  problem(text) {
    for (const each of problems()) if (each.dataset.text === text) each.remove();
    const note = el("div", { class: "problem", role: "alert", "data-text": text }, el("span", {}, dom.sentence(text)),
      button("Close", () => note.remove()));
    main.before(note);
  },
  // Also while another window is in front, if the person allowed it. One for each tag.
  notify(title, body, tag, opened) {
    if (document.hasFocus() || !("Notification" in window) || Notification.permission !== "granted") return;
    const notice = new Notification(title, { body, tag });
    notice.onclick = () => { window.focus(); notice.close(); opened?.(); };
  },
};

const problems = () => document.querySelectorAll(".problem");

function place() {
  const [part, ...rest] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  return { part, rest };
}

async function show() {
  if (location.hash === "#main") return;
  for (const each of problems()) each.remove();
  const { part, rest } = place();
  const known = about.parts.find((each) => each.name === part) ?? about.parts[0];
  if (!known) return;
  for (const link of nav.children) {
    if (link.dataset.part === known.name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (shown?.name !== known.name) {
    shown?.view.close?.();
    const module = await import(`/static/${known.name}/${known.name}.js`);
    main.replaceChildren();
    page.title(known.title);
    shown = { name: known.name, view: await module.mount(main, page) };
  }
  await shown.view.show?.(known.name === part ? rest : []);
}

function showSafely() {
  show().catch((problem) => page.problem(`This cannot be shown: ${problem.message}`));
}

function navigation() {
  nav.replaceChildren(...about.parts.map((part) =>
    el("a", { href: `#/${part.name}`, "data-part": part.name }, part.title)));
  for (const part of about.parts.filter((each) => each.has_style)) {
    document.head.append(el("link", { rel: "stylesheet", href: `/static/${part.name}/${part.name}.css` }));
  }
}

function tokenForm(...above) {
  const input = el("input", { type: "password", id: "token", autocomplete: "off", required: true });
  function submit(event) {
    event.preventDefault();
    const typed = input.value.trim();
    const token = /#token=([^&\s]+)/.exec(typed)?.[1];
    const address = token && URL.canParse(typed) ? new URL(typed) : location;
    // It is at another port now.
    if (address.hostname === location.hostname && address.origin !== location.origin) {
      location.assign(address);
      return;
    }
    wire.useToken(token ? decodeURIComponent(token) : typed);
    location.reload();
  }
  return el("form", { class: "token", on: { submit } }, above,
    el("label", { for: "token" }, "Token, or the whole address"), input, el("button", { class: "primary" }, "Open"));
}

function askToken(text) {
  main.replaceChildren(tokenForm(el("h1", {}, "Laneway"), el("p", {}, text)));
  document.getElementById("token").focus();
}

// While the page is shown: what is written and waits in it stays.
function askTokenAgain() {
  if (document.getElementById("token")) return;
  main.before(el("div", { class: "locked", role: "alert" },
    tokenForm(el("p", {}, "Laneway was started anew, with another token. Paste the address that it printed: what you wrote here is kept."))));
}

wire.onState((state) => {
  connection.textContent = WORDS[state];
  document.body.dataset.connection = state;
  if (state === "locked" && about) askTokenAgain();
});

addEventListener("hashchange", () => {
  if (location.hash.startsWith("#token=")) {
    wire.takeToken();
    location.reload();
  } else if (about) showSafely();
});

async function start() {
  if (!wire.takeToken()) {
    askToken("Laneway printed an address with a token when it started: open that, or paste it here.");
    return;
  }
  for (;;) {
    try {
      about = await wire.get("/api/page");
      break;
    } catch (problem) {
      if (problem instanceof wire.PageError && problem.status === 401) {
        askToken("This is not the token of the Laneway that runs here now. It printed its address when it started.");
        return;
      }
      connection.textContent = WORDS.lost;
      await new Promise((done) => { setTimeout(done, 1000); });
    }
  }
  navigation();
  wire.listen(about.position);
  showSafely();
}

start();
