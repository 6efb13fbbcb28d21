"use strict";
(() => {
  // Sorting: a header is a button; numbers by what they are, words by their alphabet, missing cells last.
  const words = new Intl.Collator("en", { numeric: true });
  const value = (row, column) => {
    const cell = row.cells[column];
    const number = cell.dataset.v === undefined ? NaN : Number(cell.dataset.v);
    return { number, text: cell.classList.contains("missing") ? "" : cell.textContent.trim() };
  };
  const compare = (a, b) => {
    const both = !Number.isNaN(a.number) && !Number.isNaN(b.number);
    if (both) return a.number - b.number;
    if (Number.isNaN(a.number) !== Number.isNaN(b.number)) return Number.isNaN(a.number) ? 1 : -1;
    return words.compare(a.text, b.text);
  };
  const last = (one) => Number.isNaN(one.number) && (one.text === "" || one.text === "–");
  const sort = (table, header) => {
    const first = header.dataset.kind === "number" ? "descending" : "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    const order = header.getAttribute("aria-sort") === first ? other : first;
    table.querySelectorAll("th[aria-sort]").forEach((th) => th.removeAttribute("aria-sort"));
    header.setAttribute("aria-sort", order);
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row, place) => ({ row, place, key: value(row, header.cellIndex) }));
    const sign = order === "ascending" ? 1 : -1;
    rows.sort((a, b) => last(a.key) - last(b.key) || sign * compare(a.key, b.key) || a.place - b.place);
    body.append(...rows.map((entry) => entry.row));
  };
  document.querySelectorAll("table.sortable").forEach((table) => {
    table.tHead.querySelectorAll("button.sort").forEach((button) => {
      button.addEventListener("click", () => sort(table, button.closest("th")));
    });
  });

  // Searching: rows that hold every word, in any column.
  const flat = (text) => text.toLowerCase().replaceAll("−", "-").replaceAll("\u2060", "").replace(/\s+/g, " ");
  document.querySelectorAll("input[data-table]").forEach((input) => {
    const table = document.getElementById(input.dataset.table);
    const found = document.getElementById(input.dataset.table + "-found");
    const rows = [...table.tBodies[0].rows];
    let texts = null;
    const search = () => {
      texts = texts ?? rows.map((row) => flat([...row.cells].map((cell) => cell.textContent).join(" ")));
      const wanted = flat(input.value).split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row, place) => {
        row.hidden = !wanted.every((word) => texts[place].includes(word));
        shown += !row.hidden;
      });
      found.textContent = wanted.length ? `${shown} of ${rows.length} rows` : "";
    };
    input.addEventListener("input", search);
    input.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { input.value = ""; search(); }
    });
  });

  // Light and dark: the system's choice, until somebody makes another. Nothing is remembered.
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const say = () => {
    button.setAttribute("aria-pressed", String(dark()));
    button.setAttribute("aria-label", "Dark colours");
    button.textContent = dark() ? "Light" : "Dark";
  };
  button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; say(); });
  system.addEventListener("change", say);
  say();

  // Paper has no folds.
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((one) => { one.open = true; });
  });
})();
