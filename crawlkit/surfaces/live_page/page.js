(() => {
  const facts = JSON.parse(document.getElementById("facts").textContent);
  const token = new URLSearchParams(location.search).get("token") || "";
  const at = (id) => document.getElementById(id);
  const address = (path, more = {}) => path + "?" + new URLSearchParams({ ...more, token });
  const count = (value) => number.format(value);
  const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
  const moment = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
  const time = (at_s) => new Date(at_s * 1000);
  const when = (at_s) => (at_s ? (Date.now() - at_s * 1000 < 43200e3 ? clock : moment).format(time(at_s)) : "");
  const rate = (value) => (value >= 10 ? count(Math.round(value)) : value.toFixed(1));
  const span = (seconds) => {
    if (seconds < 1) return Math.round(seconds * 1000) + " ms";
    if (seconds < 60) return Math.round(seconds) + " s";
    const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
    const first = units.findIndex(([, long]) => seconds >= long);
    const [[name, long], [next, short]] = [units[first], units[first + 1]];
    const rest = Math.floor((seconds % long) / short);
    return Math.floor(seconds / long) + " " + name + (rest ? " " + rest + " " + next : "");
  };

  // Why a host is asked nothing now.
  const WAITS = {
    dropped: "dropped: its URLs end without a request", given_up: "given up: it failed too often", held: "held by the user",
    budget: "has all the pages it may have", in_flight: "being asked", breaker: "failed often, left alone for a while",
    retry_after: "asked to be left alone", gap: "gap between requests", retry: "only URLs to be tried again later",
    ready: "ready, as soon as a worker is free", idle: "has no URLs left",
  };

  // Parts ---------------------------------------------------------------------------------------------------------------

  const shape = (name, attributes) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
    return made;
  };
  const drawing = (width, height, ...shapes) => {
    const svg = shape("svg", { viewBox: "0 0 " + width + " " + height, preserveAspectRatio: "none", "aria-hidden": "true" });
    svg.append(...shapes);
    return svg;
  };
  const replaceBelow = (figure, made) => {
    while (figure.children.length > 1) figure.lastChild.remove();
    figure.append(made);
  };
  const empty = (text) => element("p", { class: "empty" }, text);
  const nice = (value) => {
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
  };

  // Lines over time: each of [class, values]; a value of null is a gap.
  const plot = (title, times, lines, unit) => {
    const values = lines.flatMap(([, line]) => line).filter((value) => value !== null);
    if (times.length < 2 || !values.length) return empty("Shown from the second answer on.");
    const most = nice(Math.max(...values, 1e-3));
    const [first, last] = [times[0], times[times.length - 1]];
    const x = (n) => ((times[n] - first) / (last - first)) * 1000;
    const y = (value) => 100 - (value / most) * 100;
    const path = (line) => {
      let drawn = "", down = false;
      line.forEach((value, n) => {
        if (value === null) { down = false; return; }
        drawn += (down ? "L" : "M") + x(n).toFixed(1) + " " + y(value).toFixed(1);
        if (!down && (n + 1 === line.length || line[n + 1] === null)) drawn += "h0.1"; // alone between gaps: a dot
        down = true;
      });
      return drawn;
    };
    const shapes = [0, 50, 100].map((height) => shape("line", { x1: 0, x2: 1000, y1: height, y2: height }));
    if (!lines[0][1].includes(null))
      shapes.push(shape("path", { class: "area", d: path(lines[0][1]) + "L1000 100L0 100Z" }));
    for (const [kind, line] of lines) shapes.push(shape("path", { class: kind, d: path(line) }));
    return element("div", { class: "plot", role: "img", "aria-label": title },
      element("div", { class: "scale" }, ...[most, most / 2, 0].map((value) => element("span", {}, rate(value).replace(/\.0$/, "") + unit))),
      drawing(1000, 100, ...shapes),
      element("div", { class: "span" }, element("span", {}, when(first)), element("span", {}, when(last))));
  };

  const bars = (title, pairs) => {
    if (!pairs.length) return empty("None.");
    const most = Math.max(...pairs.map(([, value]) => value));
    const box = element("div", { class: "bars", tabindex: "0", role: "group", "aria-label": title });
    for (const [name, value] of pairs)
      box.append(element("span", { class: "name", title: name }, name), bar(value / most), element("span", { class: "count" }, count(value)));
    return box;
  };

  const table = (title, heads, rows) => element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": title }, element("table", {},
    element("thead", {}, element("tr", {}, ...heads.map(([head, kind]) => element("th", { scope: "col", class: kind }, head)))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((cell, n) => element("td", { class: heads[n][1] }, cell)))))));

  // A list that is being read or selected in stays until that is over; one that has not changed stays as it is.
  const drawn = new Map();
  const draw = (id, told, made) => {
    const place = at(id), text = JSON.stringify(told), selection = getSelection();
    if (drawn.get(id) === text || (selection && !selection.isCollapsed && place.contains(selection.anchorNode))) return;
    const scrolled = place.querySelector(".scroll, .bars"), top = scrolled ? scrolled.scrollTop : 0;
    const focused = place.contains(document.activeElement) ? document.activeElement : null;
    const href = focused && focused.getAttribute("href");
    drawn.set(id, text);
    place.replaceChildren(made());
    const box = place.querySelector(".scroll, .bars");
    if (box) box.scrollTop = top;
    const again = href ? [...place.querySelectorAll("a")].find((each) => each.getAttribute("href") === href) : focused && box;
    if (again) again.focus({ preventScroll: true });
  };

  // The whole -----------------------------------------------------------------------------------------------------------

  let paused = false, over = false;

  const showState = (text, kind, note) => {
    const state = at("state");
    if (state.textContent !== text) state.textContent = text;
    state.className = kind;
    if (at("note").textContent !== (note || "")) at("note").textContent = note || "";
    document.title = text + ": " + facts.name;
  };

  const showProgress = (status) => {
    const settled = status.pages + status.redirects + status.failures + status.excluded;
    const known = settled + status.queued + status.in_flight;
    const share = known ? settled / known : 0, bad = known ? status.failures / known : 0;
    at("track").setAttribute("aria-valuenow", String(Math.round(share * 100)));
    at("track").replaceChildren(drawing(1000, 10,
      shape("rect", { width: Math.max(0, share - bad) * 1000, height: 10 }),
      shape("rect", { class: "bad", x: Math.max(0, share - bad) * 1000, width: bad * 1000, height: 10 })));
    at("progress-text").textContent = count(settled) + " of " + count(known) + " known URLs have settled (" +
      (share < 1 ? Math.floor(share * 1000) / 10 : 100) + " %)";
    const running = status.state === "running";
    const pace = status.recent_per_s === null ? status.pages_per_s : status.recent_per_s;
    const numbers = [
      ["Pages", count(status.pages)], ["Queued", count(status.queued)], ["In flight", count(status.in_flight)],
      ["Failures", count(status.failures), status.failures ? "bad" : null], ["Redirects", count(status.redirects)],
      ["Excluded", count(status.excluded)],
      [status.recent_per_s === null ? "Pages a second" : "URLs a second", rate(pace)],
      ["Time left, at least", running && status.eta_s !== null ? span(status.eta_s) : "–", null, status.eta_basis],
      ["Time spent", span(status.elapsed_s)], ["Size", size(status.bytes)], ["Disk free", size(status.disk_free_bytes)],
    ];
    at("numbers").replaceChildren(...numbers.map(([name, value, kind, title]) =>
      element("div", { title: title || null }, element("dt", {}, name), element("dd", { class: kind }, value))));
    if (running && status.eta_s !== null) at("progress-text").textContent += ". Time left: " + status.eta_basis + ".";
  };

  const showTimeline = (timeline, running) => {
    const { width_s: width, points } = timeline;
    const found = new Map(points.map((point) => [point[0], point]));
    const first = points.length ? points[0][0] : 0, last = points.length ? points[points.length - 1][0] : 0;
    const times = [];
    for (let moment = first; points.length && moment <= last && times.length < 1000; moment += width) times.push(moment);
    const of = (n, none) => times.map((moment) => (found.has(moment) ? found.get(moment)[n] : none));
    const each = width === 1 ? "" : ", each point " + span(width);
    const answers = of(1, 0).map((value) => value / width), median = of(2, null), p95 = of(3, null);
    // The last stretch is not over yet.
    const whole = times.length > 2 ? times.length - 1 : times.length;
    const tell = (id, made, now) => { replaceBelow(at(id), made); at(id).querySelector(".now").replaceChildren(...now); };
    const latest = whole ? answers[whole - 1] : 0;
    tell("throughput", plot("Answers a second over time, now " + rate(latest), times.slice(0, whole), [["", answers.slice(0, whole)]], ""),
      [(running ? rate(latest) + " " : "") + "answers a second" + each]);
    const now = points.length ? points[points.length - 1] : null;
    tell("latency", plot("Latency over time" + (now ? ", now " + now[2] + " ms, 95th percentile " + now[3] + " ms" : ""),
      times, [["", median], ["second", p95]], " ms"),
    ["ms: ", element("span", { class: "key" }, "— median"), " ", element("span", { class: "key second" }, "- - 95th percentile")]);
  };

  const showLately = (lately, running) => {
    showTimeline(lately.timeline, running);
    draw("statuses-box", lately.statuses, () => bars("Statuses", Object.entries(lately.statuses).sort((a, b) => b[1] - a[1])));
    at("statuses").querySelector(".now").textContent = running ? "and reasons, of this run" : "and reasons, of all runs";
    draw("failures", lately.failures, () => lately.failures.length
      ? table("Latest failures", [["When", "number"], ["URL", "name"], ["Why", "why"]], lately.failures.map((failure) => [
        when(failure.at_s), link(failure.url),
        element("div", {}, element("div", { class: "failure" }, failure.reason + (failure.message ? ": " + failure.message : "")),
          element("div", { class: "empty" }, facts.sentences[failure.reason] || "",
            failure.again ? " Try " + failure.attempt + ", to be tried again." : failure.attempt > 1 ? " After " + failure.attempt + " tries." : "")),
      ]))
      : empty("None."));
  };

  const showHosts = (status) => {
    at("hosts-title").querySelector(".now").textContent = count(status.hosts) + " known" +
      (status.waiting.length ? ", those with most URLs of them that have work" : "");
    draw("hosts", status.waiting, () => status.waiting.length
      ? table("Hosts", [["Host", "name"], ["Waits for", "why"], ["Next", "number"], ["Queued", "number"], ["Retry", "number"], ["Pages", "number"]],
        status.waiting.map((host) => [host.host, (WAITS[host.state] || host.state) + (host.in_flight > 1 ? " (" + count(host.in_flight) + ")" : ""), host.next_s === null ? "" : host.next_s ? span(host.next_s) : "now",
          count(host.queued), count(host.timed), count(host.pages)]))
      : empty("No host has work."));
  };

  const show = (shown, ended) => {
    const status = shown.status, running = status.state === "running";
    paused = status.paused;
    const words = paused ? "paused" : status.state;
    const note = shown.problem || (paused ? "Nothing new is asked for until it continues."
      : running || status.state === "finished" ? "" : "Go on with it: crawlkit resume.");
    showState(words, words, ended ? "The run that showed this page has ended; crawlkit ui shows the crawl at rest. " + note : note);
    at("steer").hidden = ended || !running || !status.live;
    at("steer").textContent = paused ? "Continue" : "Pause";
    showProgress(status);
    if (shown.lately) showLately(shown.lately, running);
    showHosts(status);
    draw("refused", status.refused, () => bars("Links refused, by rule", Object.entries(status.refused).sort((a, b) => b[1] - a[1])));
  };

  // Answers to people -----------------------------------------------------------------------------------------------------

  const asked = async (path, more, options) => {
    try {
      const answer = await fetch(address(path, more), { cache: "no-store", ...options });
      const text = await answer.text();
      return answer.headers.get("content-type").startsWith("application/json") ? JSON.parse(text) : { error: text.trim() };
    } catch (error) {
      return { error: "The page's server does not answer." };
    }
  };

  const list = (kind, items) => element(kind, {}, ...items.map((item) => element("li", {}, item)));

  const explanation = (said) => {
    const rules = said.rules.filter((rule) => rule.rule);
    return element("div", {},
      element("p", {}, element("strong", {}, said.url || said.typed), ": " + said.summary),
      element("p", { class: "empty" }, "code " + said.code + (said.depth === null ? "" : ", depth " + said.depth)),
      said.remedy ? element("p", {}, said.remedy) : null,
      rules.length ? element("h3", {}, "Rules") : null,
      rules.length ? list("ul", rules.map((rule) => element("span", {},
        element("span", { class: rule.passed ? "passed" : "failure" }, (rule.passed ? "✓ " : "✗ ") + rule.rule), ": " + rule.code + ": " + rule.detail))) : null,
      said.path ? element("h3", {}, "Path from a seed") : null,
      said.path ? list("ol", said.path.steps.map((step) => element("span", {}, step.how + ": ", link(step.url)))) : null,
      said.linked_from && said.linked_from.found.length ? element("h3", {}, "Linked from") : null,
      said.linked_from && said.linked_from.found.length
        ? list("ul", said.linked_from.found.map((linker) => element("span", {}, linker.how + ": ", link(linker.url)))) : null,
      said.host ? element("p", {}, "Host " + said.host.name + ": " + count(said.host.pages) + " pages, " + count(said.host.queued) +
        " queued, gap " + span(said.host.gap_s) + ", breaker " + said.host.breaker) : null);
  };

  at("explain").addEventListener("submit", async (event) => {
    event.preventDefault();
    const url = at("explain").elements.url.value.trim();
    if (!url) return;
    at("explained").replaceChildren(empty("Looking…"));
    const said = await asked("/api/explain", { url });
    at("explained").replaceChildren(said.error ? element("p", { class: "failure" }, said.error) : explanation(said));
  });

  at("steer").addEventListener("click", async () => {
    at("steer").disabled = true;
    const said = await asked(paused ? "/api/continue" : "/api/pause", {}, { method: "POST" });
    at("steer").disabled = false;
    if (said.error) at("note").textContent = said.error;
  });

  at("statuses").append(element("div", { id: "statuses-box" }));
  const events = new EventSource(address("/events"));
  events.addEventListener("shown", (event) => show(JSON.parse(event.data), false));
  events.addEventListener("problem", (event) => showState("no figures", "lost", JSON.parse(event.data).error));
  events.addEventListener("over", (event) => {
    over = true;
    events.close();
    show(JSON.parse(event.data), true);
  });
  events.addEventListener("error", () => {
    if (!over) showState("no connection", "lost", "The page's server does not answer; it is tried again every few seconds.");
  });
})();
