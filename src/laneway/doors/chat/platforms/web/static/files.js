// Files that lanes send: saved or shown, some of them only after a person has said so.

const REVOKE_MS = 10_000;

export class Files {
  constructor(page) {
    this.page = page;
  }

  // Its content, or null: then `entry` says why, and may offer to send it anyway.
  async content(path, entry, retry) {
    try {
      return await (await this.page.request(path)).blob();
    } catch (problem) {
      entry.querySelector(".asks-first")?.remove();
      const note = this.page.el("div", { class: "asks-first", role: "alert" }, this.page.el("p", {}, problem.message));
      if (problem.detail?.needs_approval) {
        note.append(this.page.button("Send it anyway", async () => {
          await this.page.post(`${path}/approve`);
          note.remove();
          retry();
        }, { class: "no" }));
      }
      entry.append(note);
      return null;
    }
  }

  async download(path, item, entry) {
    const blob = await this.content(path, entry, () => this.download(path, item, entry));
    if (blob) this.save(blob, item.name);
  }

  async picture(path, item, entry) {
    const blob = await this.content(path, entry, () => this.picture(path, item, entry));
    if (!blob || entry.querySelector("img")) return;
    const kind = `image/${/jpe?g$/i.test(item.name) ? "jpeg" : item.name.split(".").pop().toLowerCase()}`;
    entry.append(this.page.el("img", { src: URL.createObjectURL(new Blob([blob], { type: kind })), alt: item.caption || item.name }));
  }

  save(blob, name) {
    const link = this.page.el("a", { href: URL.createObjectURL(blob), download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), REVOKE_MS);
  }
}
