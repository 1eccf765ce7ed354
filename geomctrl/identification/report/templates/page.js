for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, k) => head.querySelector("button").addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    const key = row => {
      const cell = row.cells[k], value = cell.dataset.value;
      return value === undefined ? cell.textContent.trim() : value === "" ? null : Number(value);
    };
    const rows = [...body.rows].map(row => [key(row), row]);
    rows.sort(([a], [b]) => a === null ? (b === null ? 0 : 1) : b === null ? -1 :
      (down ? -1 : 1) * (typeof a === "number" ? a - b : a.localeCompare(b, undefined, { numeric: true })));
    heads.forEach(other => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    body.append(...rows.map(([, row]) => row));
  }));
}
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(d => { d.open = true }));
