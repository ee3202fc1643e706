"use strict";
// The page is complete without this script, which only makes it more convenient.
(() => {
  const root = document.documentElement;
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  root.classList.add("script");

  // Theme: that of the system until the reader chooses another.
  document.getElementById("theme").addEventListener("click", () => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const now = root.dataset.theme || (dark ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
  });

  // Which methods the figures show.
  const boxes = all("input.method");
  function showMethods() {
    const on = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    const known = new Set(boxes.map((box) => box.value));
    for (const mark of all("[data-method]")) {
      mark.toggleAttribute("hidden", known.has(mark.dataset.method) && !on.has(mark.dataset.method));
    }
  }
  boxes.forEach((box) => box.addEventListener("change", showMethods));
  showMethods();

  // Sorting: the heading of a column is a button.
  function sort(table, column, heading) {
    const ascending = heading.getAttribute("aria-sort") !== "ascending";
    const words = heading.dataset.sort === "words";
    const key = (row) => row.children[column].dataset.value;
    const order = (a, b) => (words ? key(a).localeCompare(key(b)) : Number(key(a)) - Number(key(b)));
    const rows = all("tbody tr", table).sort((a, b) => (ascending ? order(a, b) : order(b, a)));
    all("th[aria-sort]", table).forEach((other) => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    table.tBodies[0].append(...rows);
  }
  for (const table of all("table.methods")) {
    all("thead th", table).forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      button.addEventListener("click", () => sort(table, column, heading));
      heading.append(button);
    });
  }

  // A narrow screen shows the main columns of the table until the reader wants all.
  for (const table of all("table.methods")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "columns";
    const name = () => (button.textContent = table.classList.contains("whole") ? "Main columns" : "All columns");
    button.addEventListener("click", () => {
      table.classList.toggle("whole");
      name();
    });
    name();
    table.parentElement.before(button);
  }

  // Copy a block of commands. If the clipboard is not allowed, select the block instead.
  for (const button of all("button.copy")) {
    button.addEventListener("click", async () => {
      const code = button.parentElement.querySelector("code");
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = "Selected";
      }
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
  }

  // The tooltip of a mark.
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);
  for (const mark of all("circle.dot, rect.bar")) {
    const title = mark.querySelector("title");
    if (!title) continue;
    mark.dataset.tip = title.textContent;
    mark.addEventListener("pointerenter", () => {
      title.remove(); // or the browser would show it a second time
      tip.textContent = mark.dataset.tip;
      tip.hidden = false;
    });
    mark.addEventListener("pointermove", (event) => {
      const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
      tip.style.left = `${Math.max(8, left)}px`;
      tip.style.top = `${Math.max(8, event.clientY - tip.offsetHeight - 12)}px`;
    });
    mark.addEventListener("pointerleave", () => {
      tip.hidden = true;
    });
  }
})();
