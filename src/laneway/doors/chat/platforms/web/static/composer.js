// The field for messages: words, commands that complete themselves, and files (chosen, pasted, dropped).

const MAX_FILES = 10;
const MAX_CHARS = 400_000;
const MAX_BYTES = 20 * 1024 * 1024;
const CLIP = "M20 11.5 12.4 19a5 5 0 0 1-7.1-7.1l7.8-7.7a3.3 3.3 0 0 1 4.7 4.7l-7.7 7.7a1.7 1.7 0 0 1-2.4-2.4l7-7";

export class Composer {
  // `send(text, files)` takes a message; `commands()` gives what can follow a slash.
  constructor(page, { send, commands, stop }) {
    this.page = page;
    this.send = send;
    this.commands = commands;
    this.files = [];
    const { el, button } = page;
    this.text = el("textarea", {
      id: "message", rows: "1", placeholder: "Message, /command, or drop a file", "aria-label": "Message",
      "aria-autocomplete": "list", "aria-controls": "completions",
      on: { keydown: (event) => this.key(event), input: () => this.typed(), paste: (event) => this.paste(event) },
    });
    this.list = el("ul", { id: "completions", role: "listbox", "aria-label": "Commands", hidden: true });
    this.chips = el("ul", { class: "chips", "aria-label": "Files of the next message", hidden: true });
    this.note = el("p", { class: "bad small", role: "status" });
    const picker = el("input", { type: "file", multiple: true, class: "unseen", tabindex: "-1", "aria-label": "Choose files",
      on: { change: () => { this.add([...picker.files]); picker.value = ""; } } });
    this.stopButton = button("Stop", stop, { class: "no stop", hidden: true });
    this.node = el("form", {
      class: "composer",
      on: { submit: (event) => { event.preventDefault(); this.submit(); } },
    }, this.chips, this.note, this.list, el("div", { class: "row" },
      button(page.icon(CLIP), () => picker.click(), { class: "quiet", "aria-label": "Add files", title: "Add files" }), picker, this.text,
      el("button", { class: "primary" }, "Send"), this.stopButton));
  }

  // Files may be dropped anywhere on this element.
  takeDrops(root) {
    root.addEventListener("dragover", (event) => event.preventDefault());
    root.addEventListener("drop", (event) => {
      event.preventDefault();
      this.add([...event.dataTransfer.files]);
    });
  }

  focus() {
    this.grow();
    this.text.focus();
  }

  get value() {
    return this.text.value;
  }

  set value(text) {
    this.text.value = text;
    this.grow();
  }

  working(yes) {
    this.stopButton.hidden = !yes;
  }

  submit() {
    const text = this.text.value.trim();
    if (!text && !this.files.length) return;
    if (text.length > MAX_CHARS) {
      this.note.textContent = `A message has at most ${MAX_CHARS.toLocaleString()} characters: add a longer text as a file.`;
      return;
    }
    this.note.textContent = "";
    const files = this.files;
    this.files = [];
    this.value = "";
    this.typed();
    this.showChips();
    this.send(text, files);
  }

  // ── keys and commands ──────────────────────────────────────────────────

  key(event) {
    if (event.isComposing) return;
    const options = [...this.list.children];
    if (!this.list.hidden && options.length) {
      const at = options.findIndex((each) => each.getAttribute("aria-selected") === "true");
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        event.preventDefault();
        this.select((at + (event.key === "ArrowDown" ? 1 : options.length - 1)) % options.length);
        return;
      }
      if (event.key === "Tab" && !event.shiftKey || event.key === "Enter" && at >= 0 && options[at].dataset.name !== this.word()) {
        event.preventDefault();
        this.take(options[Math.max(at, 0)].dataset.name);
        return;
      }
      if (event.key === "Escape") {
        event.stopPropagation();
        this.hideList();
        return;
      }
    }
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.submit();
    }
  }

  word() {
    return /^\/(\S*)$/.exec(this.text.value)?.[1] ?? null;
  }

  async typed() {
    this.grow();
    this.page.keep?.(this.text.value);
    const word = this.word();
    if (word === null) {
      this.hideList();
      return;
    }
    const found = (await this.commands()).filter((each) => each.name.startsWith(word.toLowerCase())).slice(0, 12);
    if (this.word() !== word) return;
    this.list.replaceChildren(...found.map((each, at) => this.page.el("li", {
      id: `completion-${at}`, role: "option", "data-name": each.name, "aria-selected": "false",
      on: { mousedown: (event) => { event.preventDefault(); this.take(each.name); } },
    }, this.page.el("code", {}, `/${each.name}`), ` ${each.description}`)));
    this.list.hidden = found.length === 0;
    this.text.removeAttribute("aria-activedescendant");
  }

  select(at) {
    [...this.list.children].forEach((each, index) => each.setAttribute("aria-selected", String(index === at)));
    this.list.children[at].scrollIntoView({ block: "nearest" });
    this.text.setAttribute("aria-activedescendant", `completion-${at}`);
  }

  take(name) {
    this.value = `/${name} `;
    this.hideList();
    this.focus();
  }

  hideList() {
    this.list.hidden = true;
    this.list.replaceChildren();
    this.text.removeAttribute("aria-activedescendant");
  }

  grow() {
    this.text.style.height = "auto";
    // Where it is not on the screen yet, it has no height to go by.
    if (this.text.scrollHeight) this.text.style.height = `${Math.min(this.text.scrollHeight + 2, 260)}px`;
  }

  // ── files ──────────────────────────────────────────────────────────────

  paste(event) {
    const files = [...event.clipboardData.files];
    if (!files.length) return;
    event.preventDefault();
    this.add(files);
  }

  add(files) {
    this.note.textContent = "";
    for (const file of files) {
      if (this.files.length >= MAX_FILES) this.note.textContent = `A message has at most ${MAX_FILES} files.`;
      else if (file.size > MAX_BYTES) this.note.textContent = `${file.name} is larger than 20 MB.`;
      else this.files.push(file);
    }
    this.showChips();
  }

  showChips() {
    const { el, button, size } = this.page;
    this.chips.replaceChildren(...this.files.map((file) => el("li", {}, `${file.name} (${size(file.size)}) `,
      button("×", () => {
        this.files = this.files.filter((each) => each !== file);
        this.showChips();
        this.focus();
      }, { class: "quiet", "aria-label": `Leave ${file.name} out` }))));
    this.chips.hidden = this.files.length === 0;
  }
}
