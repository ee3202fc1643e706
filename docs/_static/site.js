// Copy buttons, without the prompts of examples; a list of versions, if the site has one.
document.addEventListener("DOMContentLoaded", () => {
  for (const pre of document.querySelectorAll("div.highlight > pre")) {
    const button = document.createElement("button");
    button.className = "copy-code";
    button.type = "button";
    button.textContent = "copy";
    button.addEventListener("click", async () => {
      const lines = pre.innerText.split("\n");
      const code = lines.some((line) => line.startsWith(">>> "))
        ? lines.filter((line) => /^(>>>|\.\.\.)( |$)/.test(line)).map((line) => line.slice(4)) : lines;
      await navigator.clipboard.writeText(code.join("\n").trimEnd() + "\n");
      button.textContent = "copied";
      setTimeout(() => { button.textContent = "copy"; }, 1500);
    });
    pre.parentElement.append(button);
  }
  if (!location.protocol.startsWith("http")) return;
  const root = new URL(document.documentElement.dataset.content_root || "./", location.href);
  fetch(new URL("../versions.json", root)).then((answer) => (answer.ok ? answer.json() : [])).then((versions) => {
    if (!versions.length) return;
    const list = document.createElement("select");
    list.className = "site-version";
    list.ariaLabel = "Version";
    const here = root.pathname.split("/").filter(Boolean).pop();
    for (const version of versions) list.add(new Option(version, version, false, version === here));
    list.addEventListener("change", () => { location.href = new URL(`../${list.value}/index.html`, root); });
    document.querySelector(".sidebar-brand")?.after(list);
  }).catch(() => {});
});
