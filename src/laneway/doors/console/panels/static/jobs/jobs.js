// Background jobs: the queue with its slots, one job, and what the jobs of one run did to the work tree.

import { askingButton, attempt, badge, code, count, duration, facts, fill, number, reader, refill, time, views } from "/static/sessions/kit.js";
import { difference } from "./differences.js";
import { Timeline } from "./timeline.js";

const FOLLOW_MS = 1000;
const LIST_MS = 5000;
const ENDED = new Set(["succeeded", "failed", "cancelled", "timed_out", "stalled", "lost", "killed"]);

const short = (id) => id.slice(-8);

export async function mount(main, page) {
  const { el, button } = page;
  const at = (...path) => `/api/jobs/${path.map(encodeURIComponent).join("/")}`;
  const link = (job, text) => el("a", { href: `#/jobs/${encodeURIComponent(job)}`, title: job }, text ?? short(job));
  const runLink = (run, text) => run && el("a", { href: `#/jobs/runs/${encodeURIComponent(run)}`, title: run }, text ?? `run ${short(run)}`);
  const back = () => el("p", {}, el("a", { href: "#/jobs" }, "All jobs"));
  const words = (status) => status.replaceAll("_", " ");

  // Reads anew when there are news, and, while `lives()`, from time to time: time and tokens are no news.
  function following(read, lives, everyMs) {
    const off = [page.on("jobs", ({ topic }) => { if (topic === "changed") read(); }), page.onReset(read)];
    const timer = setInterval(() => { if (lives() && !document.hidden) read(); }, everyMs);
    return () => { clearInterval(timer); for (const each of off) each(); };
  }

  // ── the list ───────────────────────────────────────────────────────────────

  async function list(body) {
    const slots = el("div", {});
    const rows = el("ul", { class: "cards wide", "aria-label": "Jobs" });
    const more = el("p", {});
    const older = new Map();
    let lives = false;
    fill(body, el("h1", {}, "Background jobs"), slots, rows, more);
    page.title("Jobs");
    const read = reader(body, async () => {
      const told = await page.get("/api/jobs");
      const { slots: taken, tokens } = told;
      fill(slots, facts([["reading", taken.read], ["writing", taken.write], ["together", taken.total],
        ["queued", taken.queued], ["tokens today", number(tokens.today)]]));
      for (const job of told.jobs) older.delete(job.jobId);
      lives = told.jobs.some((job) => !ENDED.has(job.status));
      refill(rows, [...told.jobs, ...older.values()].map(row));
      if (!told.jobs.length) fill(rows, el("li", { class: "soft" }, "There are no jobs. ", el("code", {}, "laneway jobs spawn"), ", or an agent with the tool ", el("code", {}, "codex_spawn"), ", starts one."));
      if (!older.size) next(told.nextCursor);
    });
    function next(cursor) {
      fill(more, cursor && button("Older jobs", () => attempt(page, async () => {
        const told = await page.get(`/api/jobs?cursor=${encodeURIComponent(cursor)}`);
        for (const job of told.jobs) older.set(job.jobId, job);
        rows.append(...told.jobs.map(row));
        next(told.nextCursor);
      })));
    }
    const off = following(read, () => lives, LIST_MS);
    await read();
    return { close: off };
  }

  function row(job) {
    const where = job.status === "queued" && job.position ? `queued (${job.position})` : words(job.status);
    return el("li", { class: "card" },
      el("p", {}, el("a", { href: `#/jobs/${encodeURIComponent(job.jobId)}`, class: "name" }, job.title || job.jobId), " ", badge(where)),
      job.activity && el("p", { class: "small" }, job.activity), job.error && el("p", { class: "bad small" }, job.error),
      el("p", { class: "soft small" }, [short(job.jobId), job.node ? `${job.mode} on ${job.node}` : job.mode, "elapsedMs" in job && duration(job.elapsedMs),
        job.tokens && `${number(job.tokens)} tokens`, ...(job.tags ?? [])].filter(Boolean).join(" · "), job.run && [" · ", runLink(job.run)]));
  }

  // ── one job ────────────────────────────────────────────────────────────────

  async function one(body, jobId) {
    const head = el("div", {});
    const about = el("div", {});
    const timeline = new Timeline();
    const cancel = askingButton("Cancel", () => end(false), { class: "no" });
    const kill = askingButton("Kill", () => end(true), { class: "no" });
    const again = askingButton("Run again", () => attempt(page, async () => {
      const { jobId: made } = await page.post(at(jobId, "again"));
      page.go("jobs", made);
    }));
    const what = button("What its run changed", () => page.go("jobs", "runs", what.dataset.run));
    const actions = el("p", { class: "actions", hidden: true }, cancel, kill, again, what);
    const news = el("h2", { hidden: true }, "Events");
    let cursor = null;
    let isOver = false;
    let shown = "";
    fill(body, back(), head, actions, about, news, timeline.node);
    page.title(`Job ${short(jobId)}`);
    const end = (isForced) => attempt(page, async () => {
      await page.post(at(jobId, "cancel"), { is_forced: isForced });
      await read();
    });
    const read = reader(body, async () => {
      if (!isOver) tell(await page.get(at(jobId)));
      let told;
      do {
        told = await page.get(at(jobId, "events") + (cursor ? `?cursor=${encodeURIComponent(cursor)}` : ""));
        cursor = told.nextCursor;
        for (const each of told.events) timeline.add(each);
      } while (told.events.length && !told.done);
      if (told.done && !isOver) tell(await page.get(at(jobId)));
      isOver = told.done;
    });
    function tell(result) {
      const hasEnded = ENDED.has(result.status);
      fill(head, el("h1", {}, result.title || `Job ${jobId}`, " ", badge(words(result.status))),
        facts([["job", jobId], ["mode", result.mode], ["folder", result.cwd], ["run", runLink(result.run)], ["time", "elapsedMs" in result && duration(result.elapsedMs)],
          ["tokens", number(result.tokens)], ["doing", result.activity], ["thread", result.threadId]]));
      actions.hidden = news.hidden = false;
      cancel.hidden = kill.hidden = hasEnded;
      again.hidden = !hasEnded;
      what.hidden = !result.run;
      what.dataset.run = result.run ?? "";
      const { elapsedMs, tokens, activity, ...rest } = result;
      if (JSON.stringify(rest) === shown) return;
      shown = JSON.stringify(rest);
      refill(about, result.error && el("p", { class: "bad" }, `${words(result.error.kind)}: ${result.error.text}`),
        result.isInconsistent && el("p", { class: "warn" }, "It was ended while it may have been writing: check its files."),
        result.prompt && result.prompt !== result.title && el("details", {}, el("summary", {}, "What it was asked"), code(result.prompt, "Prompt")),
        result.lastMessage && [el("h2", {}, result.isPartial ? "Last message so far" : "Last message"), el("div", { class: "message" }, el("div", { class: "words" }, result.lastMessage))],
        result.structuredOutput !== undefined && code(JSON.stringify(result.structuredOutput, null, 2), "Structured output"),
        files(result.modifiedFiles), conflicts(result.conflicts),
        [["onlyReported", "Reported, but not changed"], ["notReported", "Changed, but not reported"], ["outsideScope", "Outside of its scope"]]
          .filter(([name]) => result[name]?.length).map(([name, label]) => el("p", { class: "warn" }, `${label}: ${result[name].join(", ")}`)),
        [...(result.breaches ?? []), ...(result.warnings ?? [])].map((text) => el("p", { class: "warn" }, text)));
    }
    const off = following(read, () => !isOver, FOLLOW_MS);
    await read();
    return { close: off };
  }

  const file = (each) => [`${each.change ?? "modified"} `, el("code", {}, each.path), el("span", { class: "soft" }, ` (evidence: ${each.certainty})`)];

  function files(changed) {
    return changed?.length > 0 && [el("h2", {}, "Files"), el("ul", {}, changed.map((each) => el("li", {}, file(each))))];
  }

  function conflicts(found, chooser = () => null) {
    return found?.length > 0 && [el("h2", {}, "Conflicts"), el("ul", {}, found.map((each, index) =>
      el("li", {}, badge(each.isResolved ? "resolved" : each.kind), " ", el("code", {}, each.path), " ",
        each.jobs.map((job, place) => [place ? " and " : "of ", link(job)]), chooser(each, index))))];
  }

  // ── one run ────────────────────────────────────────────────────────────────

  async function run(body, runId) {
    const chosen = new Set();
    const merged = new Set();
    const asked = new Map();
    const outcome = el("div", { role: "status" });
    const head = el("div", {});
    const jobs = el("ul", { class: "cards", "aria-label": "Jobs of the run" });
    const below = el("div", {});
    const merges = el("input", { type: "checkbox", id: "merges" });
    const scope = () => ({ jobs: [...chosen], merges: merges.checked });
    const rollBack = askingButton("Roll back", () => act("rollback", scope()), { class: "no" });
    const rerun = askingButton("Roll back and run again", () => act("rerun", scope()), { class: "no" });
    const undo = askingButton("Undo the last rollback", () => act("undo", { merges: merges.checked }));
    const accept = askingButton("Accept", () => act("accept", { resolved: [...merged] }), { class: "yes" });
    const actions = el("div", { hidden: true },
      el("p", { class: "soft small" }, "These are about the chosen jobs; without a choice, about all jobs of the run. An undo takes back the last rollback."),
      el("p", { class: "actions" }, rollBack, rerun, undo, accept),
      el("p", { class: "choice small" }, merges, " ", el("label", { for: "merges" }, "Where a file has changed since, merge instead of refusing")));
    let told = null;
    fill(body, back(), head, outcome, jobs, actions, below);
    page.title(`Run ${short(runId)}`);

    const read = reader(body, async () => {
      const now = await page.get(at("runs", runId));
      if (JSON.stringify(now) === JSON.stringify(told)) return;
      told = now;
      tell();
    });
    const act = (action, request) => attempt(page, async () => {
      fill(outcome);
      say(action, await page.post(at("runs", runId, action), request));
      await read();
    });
    function say(action, answer) {
      const isDone = answer.accepted === true || answer.ending === "done";
      const verb = { rollback: "The rollback", rerun: "The rollback", undo: "The undo", accept: "The acceptance" }[action];
      fill(outcome, el("div", { class: "message" },
        el("p", { class: isDone ? "good" : "bad" }, answer.text ?? `${verb} is ${words(answer.ending ?? (isDone ? "done" : "refused"))}.`),
        answer.paths?.length > 0 && el("p", {}, `Changed: ${answer.paths.join(", ")}`),
        answer.merged?.length > 0 && el("p", {}, `Merged with what was changed since: ${answer.merged.join(", ")}`),
        (answer.jobs ?? []).filter((each) => each.was).map((each) => el("p", {}, link(each.was), " runs again as ", link(each.jobId), ".")),
        [...(answer.refused ?? []), ...(answer.left ?? [])].map((each) => el("p", { class: "warn" }, `${each.path}: ${each.why}`))));
    }
    const box = (set, key, label, id) => el("span", { class: "choice" }, el("input", { type: "checkbox", id, checked: set.has(key),
      on: { change: ({ target }) => { if (target.checked) set.add(key); else set.delete(key); } } }), " ", el("label", { for: id }, label));
    function tell() {
      for (const job of chosen) if (!told.jobs.some((each) => each.jobId === job)) chosen.delete(job);
      const titles = new Map(told.jobs.map((job) => [job.jobId, job.title]));
      fill(head, el("h1", {}, `Run ${short(told.run)} `, badge(words(told.state))),
        facts([["run", told.run], ["work tree", told.tree], ["commit", told.head?.slice(0, 12)], ["not guarded", told.unguarded > 0 && count(told.unguarded, "path")],
          ["changed by somebody else", told.changedByOthers.join(", ")]]));
      refill(jobs, told.jobs.map((job, index) => el("li", { class: "card" },
        el("p", {}, box(chosen, job.jobId, el("span", { class: "name" }, job.title || job.jobId), `job-${index}`)),
        el("p", {}, link(job.jobId), " ", badge(words(job.status)), " ", job.isRolledBack && badge("rolled back")),
        el("ul", { class: "plain small" }, job.modifiedFiles.map((each) => el("li", {}, file(each), " ",
          button("Show", ({ target }) => show(target, job.jobId, each.path), { class: "quiet", "aria-label": `Show the difference of ${each.path}` }),
          asked.has(`${job.jobId} ${each.path}`) && shownDifference(asked.get(`${job.jobId} ${each.path}`), titles)))))));
      actions.hidden = false;
      rollBack.hidden = rerun.hidden = told.state === "rolled_back";
      undo.hidden = !told.rollbacks.length;
      accept.hidden = told.state !== "open";
      refill(below,
        conflicts(told.conflicts, (each, index) => each.kind === "overlap" && !each.isResolved && [" ", box(merged, each.path, "I have merged it by hand", `merged-${index}`)]),
        told.diffs.map((each) => difference(each, titles)),
        told.rollbacks.length > 0 && [el("h2", {}, "Rollbacks"), el("ul", { class: "plain small" }, told.rollbacks.map((each) =>
          el("li", {}, each.undoes ? `${short(each.rollbackId)} undid ${short(each.undoes)}` : [`${short(each.rollbackId)} rolled back `, each.jobs.map((job, place) => [place > 0 && ", ", link(job)])])))],
        told.note && el("p", { class: "soft small" }, told.note));
    }
    const shownDifference = (diffs, titles) => el("div", { class: "shown" }, diffs.map((each) => difference(each, titles, "p")));
    async function show(pressed, job, path) {
      const key = `${job} ${path}`;
      if (asked.delete(key)) pressed.closest("li").querySelector(".shown")?.remove();
      else {
        const answer = await attempt(page, () => page.get(`${at("runs", runId)}?job=${encodeURIComponent(job)}&path=${encodeURIComponent(path)}`));
        if (!answer) return;
        asked.set(key, answer.diffs);
        pressed.closest("li").append(shownDifference(answer.diffs, new Map(told.jobs.map((each) => [each.jobId, each.title]))));
      }
      fill(pressed, asked.has(key) ? "Hide" : "Show");
    }
    const off = following(read, () => false, LIST_MS);
    await read();
    return { close: off };
  }

  return views(page, main, (body, [first, second]) => (first === "runs" && second ? run(body, second) : first ? one(body, first) : list(body)));
}
