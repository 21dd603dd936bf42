(() => {
  "use strict";
  const main = document.querySelector("main"), word = document.getElementById("word");
  const last = new Map(); // of each part, as it was sent

  // A reader who is selecting in a part, or typing, keeps it as it is for the moment.
  const busy = (part) => {
    const chosen = getSelection(), at = document.activeElement;
    return (!chosen.isCollapsed && part.contains(chosen.anchorNode)) ||
      (part.contains(at) && at.matches("input, textarea, select"));
  };
  const replace = (old, part) => {
    const moved = [];
    for (const was of old.querySelectorAll("details[id], .wide[id]")) {
      const is = part.querySelector("#" + CSS.escape(was.id));
      if (!is) continue;
      if (was.open !== undefined) is.open = was.open;
      if (was.scrollLeft) moved.push([is, was.scrollLeft]);
    }
    const at = old.contains(document.activeElement) ? document.activeElement.closest("[id]") : null;
    old.replaceWith(part);
    for (const [is, left] of moved) is.scrollLeft = left;
    if (at && at.id) document.getElementById(at.id)?.focus({ preventScroll: true });
  };
  const show = (view) => {
    const next = document.createElement("template");
    next.innerHTML = view.main;
    document.title = view.title;
    const wanted = [...next.content.children];
    const ids = new Set(wanted.map((part) => part.id));
    for (const old of [...main.children]) if (!ids.has(old.id)) old.remove();
    wanted.forEach((part, i) => {
      const html = part.outerHTML, old = main.children[i];
      if (!old || old.id !== part.id) {
        document.getElementById(part.id)?.remove();
        main.insertBefore(part, old ?? null);
      } else if (last.get(part.id) === html || busy(old)) {
        return;
      } else {
        replace(old, part);
      }
      last.set(part.id, html);
    });
  };
  const tell = (text) => { if (word.textContent !== text) word.textContent = text; };

  for (const part of main.children) last.set(part.id, part.outerHTML);
  let source = null, ended = false;
  const follow = () => {
    source = new EventSource(location.href);
    source.onopen = () => tell("");
    source.onmessage = (event) => show(JSON.parse(event.data));
    source.addEventListener("end", (event) => {
      ended = true;
      source.close();
      show(JSON.parse(event.data));
    });
    source.onerror = () => tell("The connection is lost: this page shows what was known before.");
  };
  follow();
  // A browser has six connections for all tabs of a server. Those of a page that is opened often are given back.
  if ("rests" in main.dataset) document.addEventListener("visibilitychange", () => {
    source.close();
    if (!document.hidden && !ended) follow();
  });
})();
