// Search in one conversation: words, where they were found, and the way there.

export class Search {
  // `act` has at(path), attempt(work), reveal(number) and focus().
  constructor(page, act) {
    this.page = page;
    this.act = act;
    this.node = page.el("section", { class: "found", "aria-label": "Search in this conversation", hidden: true });
  }

  toggle() {
    const { el, button } = this.page;
    this.node.hidden = !this.node.hidden;
    if (this.node.hidden) {
      this.act.focus();
      return;
    }
    const results = el("ul", { class: "results" });
    const count = el("p", { class: "soft small", role: "status" });
    const input = el("input", { type: "search", id: "search", "aria-label": "Search in this conversation", placeholder: "Search" });
    const find = (event) => {
      event.preventDefault();
      this.act.attempt(() => this.find(input.value, results, count));
    };
    this.node.replaceChildren(el("form", { on: { submit: find } }, input, " ", el("button", { class: "primary" }, "Search"), " ",
      button("Close", () => this.toggle(), { class: "quiet" })), count, results);
    this.node.onkeydown = (event) => { if (event.key === "Escape") this.toggle(); };
    input.focus();
  }

  async find(words, results, count) {
    const { found, count: all } = await this.page.get(this.act.at(`search?q=${encodeURIComponent(words)}`));
    count.textContent = all === 0 ? "Nothing was found." : all === 1 ? "Found once." : `Found in ${all} places.`;
    results.replaceChildren(...found.reverse().map((each) => this.page.el("li", {},
      this.page.button(each.text, () => this.act.attempt(() => this.act.reveal(each.n)), { class: "quiet" }), this.page.clock(each.at))));
  }
}
