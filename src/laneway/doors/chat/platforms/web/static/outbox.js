// What a person sends: shown at once, kept in the tab until the server has it, sent again with the same key.

const API = "/api/chat";
const MAX_KEPT = 20;

export class Outbox {
  // `log` shows messages that are on their way, and those that were refused.
  constructor(page, log) {
    this.page = page;
    this.log = log;
  }

  // What is kept of one conversation, after `change`.
  kept(conversation, change = (kept) => kept) {
    const name = `laneway.outbox.${conversation}`;
    const kept = change(JSON.parse(sessionStorage.getItem(name) ?? "[]"));
    if (kept.length) sessionStorage.setItem(name, JSON.stringify(kept.slice(-MAX_KEPT)));
    else sessionStorage.removeItem(name);
    return kept;
  }

  async send(conversation, text, files) {
    const key = this.page.newKey();
    this.log.pending(key, text, files.length);
    try {
      const uploads = [];
      for (const file of files) uploads.push(await this.upload(file));
      const message = { text, uploads: uploads.map((each) => each.id), names: uploads.map((each) => each.name) };
      this.kept(conversation, (kept) => [...kept, { key, message }]);
      await this.post(conversation, key, message);
    } catch (problem) {
      this.log.refuse(key, problem.message);
    }
  }

  async post(conversation, key, message) {
    const without = (kept) => kept.filter((each) => each.key !== key);
    try {
      await this.page.post(`${API}/conversations/${encodeURIComponent(conversation)}/messages`, message, { key });
    } catch (problem) {
      // Without a valid token nothing was decided: it is sent again once there is one.
      if (problem.status === 401) return;
      this.kept(conversation, without);
      throw problem;
    }
    this.kept(conversation, without);
  }

  // What was being sent when the page was closed or reloaded: the key lets it arrive once.
  resend(conversation) {
    for (const { key, message } of this.kept(conversation)) {
      if (!this.log.keyed.has(`message ${key}`)) this.log.pending(key, message.text, message.uploads.length);
      this.post(conversation, key, message).catch((problem) => this.log.refuse(key, problem.message));
    }
  }

  async upload(file) {
    // Read here: a folder, or a file that is gone, would look like a lost connection.
    const body = await file.arrayBuffer().catch(() => { throw new Error(`${file.name} cannot be read`); });
    const headers = { "content-type": "application/octet-stream", "x-file-name": encodeURIComponent(file.name || "pasted") };
    return this.page.post(`${API}/uploads`, null, { body, headers });
  }
}
