// The keyboard on the search page: "/" to the box, j and k (or the arrows) through the results, Enter opens.
// The page works without this file.
"use strict";

(() => {
  const box = document.querySelector(".searchbox input");
  const links = [...document.querySelectorAll(".hit a.open")];
  const keys = document.querySelector(".keys");
  if (keys && links.length) keys.hidden = false;

  const typing = (target) => target.matches("input, textarea, select") || target.isContentEditable;

  const move = (step) => {
    const at = links.indexOf(document.activeElement);
    const next = at < 0 ? (step > 0 ? 0 : links.length - 1) : at + step;
    if (next < 0) {
      box?.focus();
      return;
    }
    const link = links[Math.min(next, links.length - 1)];
    link.focus({ preventScroll: true });
    link.closest(".hit").scrollIntoView({ block: "nearest" });
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (typing(event.target)) {
      if (event.key === "Escape") event.target.blur();
      else if (event.key === "ArrowDown" && links.length) {
        event.preventDefault();
        move(1);
      }
      return;
    }
    const steps = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };
    if (event.key === "/" && box) {
      event.preventDefault();
      box.focus();
      box.select();
    } else if (event.key in steps && links.length) {
      event.preventDefault();
      move(steps[event.key]);
    }
  });
})();
