(() => {
  const ROWS_A_PAGE = 100;
  const data = (name) => JSON.parse(document.getElementById("data-" + name).textContent);
  const [crawl] = data("crawl");
  const [charts] = data("charts");

  // Head --------------------------------------------------------------------------------------------------------------

  const kinds = Object.fromEntries(charts.kinds);
  const figures = [
    ["Pages", number.format(kinds.page || 0)], ["Redirects", number.format(kinds.redirect || 0)],
    ["Failures", number.format(kinds.failure || 0)], ["Excluded", number.format(kinds.excluded || 0)],
    ["Hosts", number.format(crawl.hosts)], ["Size", size(crawl.bytes)],
    ["Time", crawl.elapsed_s < 60 ? crawl.elapsed_s.toFixed(1) + " s" : number.format(Math.round(crawl.elapsed_s / 60)) + " min"],
  ];
  document.getElementById("numbers").append(
    ...figures.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
  document.getElementById("state").textContent =
    (crawl.finished ? "Finished" : "Not finished") + ", " + crawl.runs + (crawl.runs === 1 ? " run" : " runs") + ", from " +
    crawl.seeds.join(", ") +
    (crawl.reasons.length ? ". Depends on order or time: " + crawl.reasons.join(", ") : "");

  // Charts ------------------------------------------------------------------------------------------------------------

  const chart = (title, bars, shown = number.format.bind(number)) => {
    if (!bars.length) return;
    const most = Math.max(...bars.map(([, count]) => count));
    const box = element("div", { class: "bars", tabindex: "0", role: "group", "aria-label": title });
    for (const [name, count] of bars)
      box.append(element("span", { class: "name", title: name }, name), bar(count / most), element("span", { class: "count" }, shown(count)));
    document.getElementById("charts").append(element("figure", {}, element("h3", {}, title), box));
  };
  chart("Statuses and reasons", charts.statuses);
  chart("Depth: links from a seed", charts.depths);
  chart("Sizes of pages", charts.sizes);
  chart("Largest origins", charts.origins);
  chart("Slowest", charts.slowest.map(([ms, url]) => [url, ms]), (ms) => number.format(ms) + " ms");
  chart("Refused, by rule", Object.entries(crawl.refused));

  // Tables ------------------------------------------------------------------------------------------------------------

  const compare = (a, b) => (a === b ? 0 : a === null ? 1 : b === null ? -1 : a < b ? -1 : 1);

  // Columns: [title, value of a row, "number" | "wide" | "", how it is shown].
  const table = (place, rows, columns, options) => {
    const section = document.getElementById(place);
    if (!rows.length) {
      section.append(element("p", { class: "empty" }, "None."));
      return;
    }
    let found = rows, page = 0, sorted = null, ascending = true;
    const body = element("tbody");
    const count = element("span", { role: "status", "aria-live": "polite" });
    const heads = columns.map(([title, value, kind], index) => element("th", { scope: "col", class: kind || null },
      element("button", { type: "button", on: { click: () => sort(index) } }, title)));
    const turn = (by) => () => { page += by; draw(); };
    const back = element("button", { type: "button", on: { click: turn(-1) } }, "Previous");
    const next = element("button", { type: "button", on: { click: turn(1) } }, "Next");

    const draw = () => {
      const pages = Math.max(1, Math.ceil(found.length / ROWS_A_PAGE));
      page = Math.min(Math.max(page, 0), pages - 1);
      back.disabled = page === 0;
      next.disabled = page === pages - 1;
      const first = page * ROWS_A_PAGE;
      const shown = found.slice(first, first + ROWS_A_PAGE);
      count.textContent = found.length
        ? number.format(first + 1) + " to " + number.format(first + shown.length) + " of " + number.format(found.length)
        : "none of " + number.format(rows.length);
      body.replaceChildren(...shown.map((row) => element("tr", {}, ...columns.map(([, value, kind, display]) => {
        const told = display ? display(row) : value(row);
        return element("td", { class: kind || null }, told === null ? "" : told instanceof Node ? told : String(told));
      }))));
    };
    const sort = (index) => {
      ascending = sorted === index ? !ascending : true;
      sorted = index;
      heads.forEach((head, n) => n === index ? head.setAttribute("aria-sort", ascending ? "ascending" : "descending") : head.removeAttribute("aria-sort"));
      arrange();
      page = 0;
      draw();
    };
    const arrange = () => {
      if (sorted === null) return;
      const value = columns[sorted][1];
      found = found.slice().sort((a, b) => {
        const x = value(a), y = value(b);
        return x === null || y === null ? compare(x, y) : ascending ? compare(x, y) : compare(y, x);
      });
    };
    const filter = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const kind = choice ? choice.value : "";
      found = rows.filter((row) => (kind === "" || options.kind(row) === kind) &&
        words.every((word) => options.text(row).toLowerCase().includes(word)));
      arrange();
      page = 0;
      draw();
    };
    const search = element("input", { type: "search", "aria-label": "Filter", placeholder: "Filter", on: { input: filter } });
    const choice = options.kind && element("select", { "aria-label": "Kind", on: { change: filter } },
      element("option", { value: "" }, "all kinds"), ...crawl.kinds.map((kind) => element("option", { value: kind }, kind)));
    section.append(
      element("div", { class: "tools" }, search, choice || null, back, next, count),
      element("div", { class: "scroll" }, element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body)));
    draw();
  };

  table("broken", data("broken"), [
    ["Target", (row) => row[0], "wide", (row) => link(row[0])],
    ["Status", (row) => row[1]],
    ["Leads to", (row) => row[2], "wide"],
    ["Linked from", (row) => row[3], "number", (row) => number.format(row[3])],
    ["By", (row) => row[4][0] || null, "wide", (row) => element("div", {}, ...row[4].map((url) => element("div", {}, link(url))),
      row[3] > row[4].length && row[4].length ? element("div", { class: "empty" }, "and " + number.format(row[3] - row[4].length) + " more") : null)],
  ], { text: (row) => row[0] + " " + row[1] + " " + row[4].join(" ") });

  table("duplicates", data("duplicates"), [
    ["Page", (row) => row[0], "wide", (row) => link(row[0])],
    ["Is like", (row) => row[1], "wide", (row) => link(row[1])],
    ["How", (row) => row[2]],
    ["Pages", (row) => row[3], "number"],
  ], { text: (row) => row[0] + " " + row[1] });

  const rows = data("rows");
  const kindOf = (row) => crawl.kinds[row[1]];
  table("urls", rows, [
    ["URL", (row) => row[0], "wide", (row) => link(row[0])],
    ["Kind", kindOf, "", (row) => element("span", { class: kindOf(row) }, kindOf(row))],
    ["Status", (row) => row[2], "number"],
    ["Depth", (row) => row[3], "number"],
    ["Size", (row) => row[4], "number", (row) => size(row[4])],
    ["Type", (row) => row[5]],
    ["Title", (row) => row[6], "wide"],
    ["Reason, target", (row) => row[7] || row[8], "wide"],
    ["ms", (row) => row[9], "number"],
    ["Links", (row) => row[10], "number"],
    ["Words", (row) => row[11], "number"],
  ], { kind: kindOf, text: (row) => row[0] + " " + (row[6] || "") + " " + (row[7] || "") + " " + (row[2] || "") });
  if (crawl.records > rows.length)
    document.getElementById("urls").append(element("p", { class: "empty" },
      "The first " + number.format(rows.length) + " of " + number.format(crawl.records) + " URLs; crawlkit export has them all."));
})();
