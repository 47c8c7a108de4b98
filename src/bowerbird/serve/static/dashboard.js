// Keeps the dashboard current: asks for its panels every two seconds and puts in those that changed.
// Without this script the page is as it was when it was opened.
"use strict";
(() => {
  const EVERY_MS = 2000;
  const LONGEST_WAIT_MS = 15000;
  const PATIENCE_MS = 10000; // how long a panel waits while somebody reads a value in it
  const root = document.getElementById("dashboard");
  const connection = document.getElementById("connection");
  if (!root || !connection) return;
  const shown = new Map();
  const heldSince = new Map();
  let failures = 0;
  let lastAnswer = null;
  let timer = 0;
  let asking = false;

  const clock = (date) => date.toISOString().slice(11, 19) + " UTC";

  function say(state, text) {
    connection.dataset.state = state;
    if (connection.textContent !== text) connection.textContent = text;
  }

  function isRead(section, name) {
    const selection = window.getSelection();
    const selected = selection && !selection.isCollapsed && selection.rangeCount > 0 &&
      selection.getRangeAt(0).intersectsNode(section);
    if (!selected && !section.querySelector("svg.chart:hover")) {
      heldSince.delete(name);
      return false;
    }
    if (!heldSince.has(name)) heldSince.set(name, Date.now());
    return selected || Date.now() - heldSince.get(name) < PATIENCE_MS;
  }

  function replace(section, html) {
    const open = [...section.querySelectorAll("details[open]")].map((one) => one.dataset.key);
    const scrolled = [...section.querySelectorAll(".scroll")].map((one) => [one.scrollLeft, one.scrollTop]);
    const focused = section.contains(document.activeElement) ? document.activeElement : null;
    const focusedLink = focused && focused.getAttribute("href");
    const focusedFold = focused && focused.tagName === "SUMMARY" ? focused.parentElement.dataset.key : null;
    const made = document.createElement("template");
    made.innerHTML = html; // made by our own server, which escapes what comes from elsewhere
    section.replaceChildren(made.content);
    for (const one of section.querySelectorAll("details")) if (open.includes(one.dataset.key)) one.open = true;
    section.querySelectorAll(".scroll").forEach((one, nth) => {
      if (scrolled[nth]) [one.scrollLeft, one.scrollTop] = scrolled[nth];
    });
    const again = focusedLink ? [...section.querySelectorAll("a")].find((one) => one.getAttribute("href") === focusedLink)
      : focusedFold ? [...section.querySelectorAll("summary")].find((one) => one.parentElement.dataset.key === focusedFold)
        : null;
    if (again) again.focus({ preventScroll: true });
  }

  function show(answer) {
    for (const [name, html] of Object.entries(answer.panels)) {
      const section = document.getElementById("panel-" + name);
      if (!section || shown.get(name) === html || isRead(section, name)) continue;
      replace(section, html);
      shown.set(name, html);
    }
    say("live", "live, as of " + clock(new Date(answer.at)));
  }

  async function refresh() {
    if (asking || document.hidden) return;
    asking = true;
    window.clearTimeout(timer);
    try {
      const response = await fetch(root.dataset.live, { cache: "no-store", signal: AbortSignal.timeout(20000) });
      if (!response.ok) throw new Error("status " + response.status);
      show(await response.json());
      failures = 0;
      lastAnswer = new Date();
    } catch (error) {
      failures += 1;
      say("lost", "disconnected: no answer from the server" +
        (lastAnswer ? " since " + clock(lastAnswer) : "") + "; trying again");
    } finally {
      asking = false;
      const wait = failures ? Math.min(EVERY_MS * 2 ** failures, LONGEST_WAIT_MS) : EVERY_MS;
      timer = window.setTimeout(refresh, wait);
    }
  }

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) say("paused", "paused while the tab is hidden");
    else refresh();
  });
  window.addEventListener("online", refresh);
  timer = window.setTimeout(refresh, EVERY_MS);
  say("live", "live");
})();
