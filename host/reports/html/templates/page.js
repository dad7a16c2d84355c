"use strict";
(() => {
  const element = (name, properties, ...children) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  };
  const copy = async (text, button) => {
    const before = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      const area = element("textarea", { value: text });
      document.body.append(area);
      area.select();
      button.textContent = document.execCommand("copy") ? "Copied" : "Copy failed";
      area.remove();
      button.focus();
    }
    setTimeout(() => { button.textContent = before; }, 1500);
  };
  // A spreadsheet takes what begins so for a formula (OWASP, CSV Injection); a plain number is none.
  const field = (text) => {
    const guarded = /^[=+\-@\t\r]/.test(text) && !/^[+-]?[\d.]+(e[+-]?\d+)?$/i.test(text) ? "'" + text : text;
    return /[",\r\n]/.test(guarded) ? '"' + guarded.replaceAll('"', '""') + '"' : guarded;
  };
  const csv = (table) =>
    [...table.rows]
      .filter((row) => !row.hidden)
      .map((row) => [...row.cells].map((cell) => field((cell.dataset.name ?? cell.textContent).trim())).join(","))
      .join("\r\n") + "\r\n";

  const order = new Intl.Collator("en", { numeric: true });
  const sortBy = (table, column, descending) => {
    const body = table.tBodies[0];
    const key = (row) => {
      const cell = row.cells[column];
      return "v" in cell.dataset ? Number(cell.dataset.v) : cell.textContent;
    };
    const compare = (a, b) => {
      if (typeof a === "number" && typeof b === "number") return a - b;
      // Cells without a figure stand behind those with one.
      if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
      return order.compare(a, b);
    };
    const rows = [...body.rows].map((row) => [key(row), row]);
    rows.sort((a, b) => (descending ? compare(b[0], a[0]) : compare(a[0], b[0])));
    body.append(...rows.map((row) => row[1]));
  };

  for (const details of document.querySelectorAll("details.table")) {
    const table = details.querySelector("table");
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      head.dataset.name = head.textContent;
      const button = element("button", { type: "button", textContent: head.textContent });
      button.addEventListener("click", () => {
        const descending = head.ariaSort === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.ariaSort = descending ? "descending" : "ascending";
        sortBy(table, column, descending);
      });
      head.replaceChildren(button);
    });
    const caption = table.caption.textContent;
    const shown = element("small", { role: "status" });
    const filter = element("input", { type: "search", placeholder: "Filter rows", ariaLabel: "Filter " + caption });
    filter.addEventListener("input", () => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      let count = 0;
      for (const row of table.tBodies[0].rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        count += row.hidden ? 0 : 1;
      }
      shown.textContent = words.length ? count + " shown" : "";
    });
    const button = element("button", { type: "button", textContent: "Copy as CSV" });
    button.addEventListener("click", () => copy(csv(table), button));
    details.querySelector("summary").after(element("div", { className: "tools" }, filter, button, shown));
  }
  for (const command of document.querySelectorAll(".command")) {
    const button = element("button", { type: "button", className: "copy", textContent: "Copy" });
    button.addEventListener("click", () => copy(command.querySelector("code").textContent, button));
    command.append(button);
  }
})();
