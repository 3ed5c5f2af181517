// Background jobs: the queue with its slots, one job, and what the jobs of one run did to the work tree.

import { askingButton, attempt, badge, code, diff, duration, facts, number, reader, threeWay, time } from "/static/sessions/kit.js";

const FOLLOW_MS = 1000;
const ENDED = new Set(["succeeded", "failed", "cancelled", "timed_out", "stalled", "lost", "killed"]);

export async function mount(main, page) {
  const { el, button } = page;
  const root = el("div", { class: "panel" });
  main.append(root);
  let view = null;
  const at = (...path) => `/api/jobs/${path.map(encodeURIComponent).join("/")}`;
  const link = (job, text) => el("a", { href: `#/jobs/${encodeURIComponent(job)}` }, text ?? job);
  const runLink = (run) => run && el("a", { href: `#/jobs/runs/${encodeURIComponent(run)}` }, run);

  function following(read) {
    const off = [page.on("jobs", ({ topic }) => { if (topic === "changed") read(); }), page.onReset(read)];
    return () => { for (const each of off) each(); };
  }

  // ── the list ───────────────────────────────────────────────────────────────

  async function list() {
    const slots = el("div", {});
    const body = el("tbody", {});
    const more = el("p", {});
    const head = el("tr", {}, ["job", "status", "work", "mode", "time", "tokens", "run"].map((name) => el("th", { scope: "col" }, name)));
    root.replaceChildren(el("h1", {}, "Background jobs"), slots,
      el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Jobs" }, el("table", {}, el("thead", {}, head), body)), more);
    const read = reader(page, async () => {
      const told = await page.get("/api/jobs");
      const { slots: taken, tokens } = told;
      slots.replaceChildren(facts([["reading", taken.read], ["writing", taken.write], ["together", taken.total],
        ["queued", taken.queued], ["tokens today", number(tokens.today)]]));
      body.replaceChildren(...told.jobs.map(row));
      if (!told.jobs.length) body.append(el("tr", {}, el("td", { colspan: "7", class: "soft" }, "There are no jobs.")));
      older(told.nextCursor);
    });
    function older(cursor) {
      more.replaceChildren();
      if (cursor) more.append(button("Older jobs", () => attempt(page, async () => {
        const told = await page.get(`/api/jobs?cursor=${encodeURIComponent(cursor)}`);
        body.append(...told.jobs.map(row));
        older(told.nextCursor);
      })));
    }
    const off = following(read);
    await read();
    return { close: off };
  }

  function row(job) {
    const where = job.status === "queued" && job.position ? `queued (${job.position})` : job.status;
    return el("tr", {}, el("th", { scope: "row" }, link(job.jobId, job.jobId.slice(-8))), el("td", {}, badge(where)),
      el("td", {}, job.title, job.activity && el("div", { class: "soft small" }, job.activity), job.error && el("div", { class: "bad small" }, job.error)),
      el("td", {}, job.node ? `${job.mode} on ${job.node}` : job.mode), el("td", {}, "elapsedMs" in job ? duration(job.elapsedMs) : ""),
      el("td", {}, number(job.tokens)), el("td", {}, runLink(job.run)));
  }

  // ── one job ────────────────────────────────────────────────────────────────

  async function one(jobId) {
    const about = el("div", {});
    const events = el("ol", { class: "log", "aria-label": "Events" });
    let cursor = null;
    let isOver = false;
    root.replaceChildren(el("p", {}, el("a", { href: "#/jobs" }, "All jobs")), about, el("h2", {}, "Events"), events);
    const read = reader(page, async () => {
      if (!isOver || !about.childElementCount) tell(await page.get(at(jobId)));
      let told;
      do {
        told = await page.get(at(jobId, "events") + (cursor ? `?cursor=${encodeURIComponent(cursor)}` : ""));
        cursor = told.nextCursor;
        events.append(...told.events.map(event));
      } while (told.events.length && !told.done);
      isOver = told.done;
    });
    function tell(result) {
      const hasEnded = ENDED.has(result.status);
      about.replaceChildren(el("h1", {}, `Job ${jobId} `, badge(result.status)),
        facts([["run", runLink(result.run)], ["time", "elapsedMs" in result && duration(result.elapsedMs)], ["tokens", number(result.tokens)],
          ["doing", result.activity], ["thread", result.threadId], ["partial", result.isPartial && "yes: it has not ended"]]),
        result.error && el("p", { class: "bad" }, `${result.error.kind}: ${result.error.text}`),
        result.isInconsistent && el("p", { class: "warn" }, "It was ended while it may have been writing: check its files."),
        el("p", { class: "actions" },
          !hasEnded && askingButton("Cancel", () => cancel(false), { class: "no" }),
          !hasEnded && askingButton("Kill", () => cancel(true), { class: "no" }),
          hasEnded && askingButton("Run again", again),
          result.run && runLinkButton(result.run)),
        result.lastMessage && el("div", {}, el("h2", {}, "Last message"), el("div", { class: "message" }, el("div", { class: "words" }, result.lastMessage))),
        result.structuredOutput !== undefined && code(JSON.stringify(result.structuredOutput, null, 2), "Structured output"),
        files(result.modifiedFiles), conflicts(result.conflicts),
        ["onlyReported", "notReported", "outsideScope"].filter((name) => result[name]?.length).map((name) =>
          el("p", { class: "warn" }, { onlyReported: "Reported, but not changed: ", notReported: "Changed, but not reported: ", outsideScope: "Outside of its scope: " }[name], result[name].join(", "))),
        [...(result.breaches ?? []), ...(result.warnings ?? [])].map((text) => el("p", { class: "warn" }, text)));
    }
    const cancel = (isForced) => attempt(page, async () => {
      await page.post(at(jobId, "cancel"), { is_forced: isForced });
      await read();
    });
    const again = () => attempt(page, async () => {
      const { jobId: made } = await page.post(at(jobId, "again"));
      page.go("jobs", made);
    });
    const timer = setInterval(() => { if (!isOver && !document.hidden) read(); }, FOLLOW_MS);
    const off = following(read);
    await read();
    return { close() { clearInterval(timer); off(); } };
  }

  function runLinkButton(run) {
    return button("What its run changed", () => page.go("jobs", "runs", run));
  }

  function files(changed) {
    if (!changed?.length) return null;
    return el("div", {}, el("h2", {}, "Files"), el("ul", {}, changed.map((file) =>
      el("li", {}, `${file.change ?? "modified"} `, el("code", {}, file.path), ` (evidence: ${file.certainty})`))));
  }

  function conflicts(found) {
    if (!found?.length) return null;
    return el("div", {}, el("h2", {}, "Conflicts"), el("ul", {}, found.map((each) =>
      el("li", { class: each.isResolved || each.kind !== "overlap" ? "warn" : "bad" }, `${each.kind} `, el("code", {}, each.path), " ",
        each.jobs.map((job, index) => [index ? " and " : "", link(job)]), each.isResolved && " (resolved)"))));
  }

  function event({ type, content, timestamp }) {
    const said = content ?? {};
    const line = typeof said === "string" ? said : said.text ?? said.command ?? said.query ?? said.status ?? said.kind ?? "";
    const more = typeof said === "object" && (said.output || said.changes);
    return el("li", { class: type === "error" ? "bad" : "" }, time(timestamp), ` ${type.replace("_", " ")} `,
      typeof said === "object" && said.tool && el("strong", {}, `${said.tool} `), el("span", { class: "words" }, String(line)),
      said.exitCode ? ` exit code ${said.exitCode}` : "",
      more && el("details", {}, el("summary", {}, "more"), code(typeof said.output === "string" ? said.output : JSON.stringify(said, null, 2), "Output")));
  }

  // ── one run ────────────────────────────────────────────────────────────────

  async function run(runId) {
    const chosen = new Set();
    const merged = new Set();
    const outcome = el("div", { role: "status" });
    const about = el("div", {});
    root.replaceChildren(el("p", {}, el("a", { href: "#/jobs" }, "All jobs")), outcome, about);

    const read = reader(page, async () => tell(await page.get(at("runs", runId))));
    async function act(action, body) {
      await attempt(page, async () => {
        const answer = await page.post(at("runs", runId, action), body);
        say(action, answer);
        await read();
      });
    }
    function say(action, answer) {
      const done = answer.accepted === true || answer.ending === "done";
      const lines = [...(answer.refused ?? []), ...(answer.left ?? [])].map((each) => `${each.path}: ${each.why}`);
      outcome.replaceChildren(el("div", { class: "message" },
        el("p", { class: done ? "good" : "bad" }, answer.text ?? `${action}: ${answer.ending ?? (done ? "done" : "not done")}`),
        answer.paths?.length > 0 && el("p", {}, `Paths: ${answer.paths.join(", ")}`),
        answer.merged?.length > 0 && el("p", {}, `Merged with what was changed since: ${answer.merged.join(", ")}`),
        answer.jobs?.length > 0 && el("p", {}, answer.jobs.filter((each) => each.was).map((each) => [each.was, " runs again as ", link(each.jobId), ". "])),
        lines.map((line) => el("p", { class: "warn" }, line))));
    }
    function tell(told) {
      for (const job of chosen) if (!told.jobs.some((each) => each.jobId === job)) chosen.delete(job);
      const boxes = (set, key, label, id) => [el("input", { type: "checkbox", id, checked: set.has(key),
        on: { change: ({ target }) => { if (target.checked) set.add(key); else set.delete(key); } } }), el("label", { for: id }, label)];
      const scope = () => ({ jobs: [...chosen] });
      about.replaceChildren(el("h1", {}, `Run ${told.run} `, badge(told.state.replace("_", " "))),
        facts([["work tree", told.tree], ["head", told.head?.slice(0, 12)], ["not guarded", told.unguarded ? `${told.unguarded} paths` : ""],
          ["changed by somebody else", told.changedByOthers.join(", ")]]),
        el("h2", {}, "Jobs"),
        el("ul", { class: "cards" }, told.jobs.map((job, index) => el("li", { class: "card" },
          el("p", { class: "option" }, boxes(chosen, job.jobId, el("span", { class: "unseen" }, `choose ${job.jobId}`), `job-${index}`), " ", link(job.jobId), " ",
            badge(job.status), " ", job.isRolledBack && badge("rolled back")),
          el("p", {}, job.title),
          el("ul", { class: "small" }, job.modifiedFiles.map((file) => el("li", {}, `${file.change ?? "modified"} `, el("code", {}, file.path), ` (evidence: ${file.certainty}) `,
            button("difference", ({ target }) => show(target, file.path), { class: "quiet" }))))))),
        el("p", { class: "soft small" }, "Without a choice, the buttons below are about all jobs of the run."),
        el("p", { class: "actions" },
          askingButton("Roll back", () => act("rollback", scope()), { class: "no" }),
          askingButton("Roll back and run again", () => act("rerun", scope()), { class: "no" }),
          askingButton("Undo the last rollback", () => act("undo", {})),
          askingButton("Accept", () => act("accept", { resolved: [...merged] }), { class: "yes" })),
        told.conflicts.length > 0 && el("div", {}, el("h2", {}, "Conflicts"),
          el("ul", {}, told.conflicts.map((each, index) => el("li", { class: each.kind === "overlap" && !each.isResolved ? "bad" : "warn" },
            `${each.kind} `, el("code", {}, each.path), ` ${each.jobs.join(" and ")} `, each.isResolved && "(resolved)",
            each.kind === "overlap" && !each.isResolved && el("span", { class: "option" }, boxes(merged, each.path, "merged by hand", `merged-${index}`)))))),
        told.diffs.map(difference),
        told.rollbacks.length > 0 && el("div", {}, el("h2", {}, "Rollbacks"), el("ul", {}, told.rollbacks.map((each) =>
          el("li", {}, each.rollbackId, each.undoes ? ` takes ${each.undoes} back` : ` of ${each.jobs.join(" and ")}`)))));
    }
    async function show(pressed, path) {
      const told = await attempt(page, () => page.get(`${at("runs", runId)}?path=${encodeURIComponent(path)}`));
      if (!told) return;
      const item = pressed.closest("li");
      item.querySelector(".difference")?.remove();
      item.append(...told.diffs.map(difference));
    }
    const off = following(read);
    await read();
    return { close: off };
  }

  function difference(each) {
    const isBinary = each.is_binary || each.isBinary;
    const names = each.jobs;
    return el("section", { class: "difference" }, el("h3", {}, el("code", {}, each.path)),
      isBinary && el("p", { class: "soft" }, "It is no text: there is nothing to show."),
      !isBinary && names.length === 1 && diff(each.diff ?? "", `What ${names[0]} changed`),
      !isBinary && names.length > 1 && el("div", { class: "pair" }, ["one", "other"].map((side, index) =>
        el("div", {}, el("p", { class: "small" }, link(names[index])), each[side] ? diff(each[side], `What ${names[index]} changed`) : el("p", { class: "soft" }, "Changed nothing that is left.")))),
      !isBinary && names.length > 1 && (each.conflicts
        ? el("div", {}, el("p", { class: "bad" }, each.conflicts === 1 ? "One place is in dispute:" : `${each.conflicts} places are in dispute:`), threeWay(each.merged ?? "", names))
        : el("p", { class: "soft" }, "Both fit together: nothing is in dispute.")),
      each.is_cut && el("p", { class: "warn small" }, "It is longer: this is its beginning."));
  }

  return {
    async show([first, second] = []) {
      view?.close();
      view = null;
      try {
        view = await (first === "runs" && second ? run(second) : first ? one(first) : list());
      } catch (problem) {
        page.problem(problem.message);
      }
    },
    close() { view?.close(); },
  };
}
