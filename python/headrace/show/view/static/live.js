// Asks for the page again while it can change, and replaces what is different: scroll position, open details
// and the selection stay. Without script the page is what it was when it was loaded.
"use strict";
(() => {
  // The server asks for longer pauses where a page takes much CPU time.
  let pause_ms = 2000;
  let stamp = null;

  // Open details, by their words: figures change, and an element may be replaced by a new one.
  function details() {
    const found = new Map();
    for (const each of document.querySelectorAll("details")) {
      const words = (each.querySelector("summary")?.textContent ?? "").replace(/[0-9.,%]+/g, "");
      let key = words;
      for (let again = 2; found.has(key); ++again) key = `${words} ${again}`;
      found.set(key, each);
    }
    return found;
  }

  async function refresh() {
    const response = await fetch(location.href, {headers: stamp === null ? {} : {"If-None-Match": stamp}});
    const status = document.querySelector(".status");
    const said = response.headers.get("X-Headrace-Status");
    if (status && said && status.textContent !== said) status.textContent = said;
    pause_ms = Number(response.headers.get("X-Headrace-Pause")) || pause_ms;
    if (response.status !== 200) return response.status === 304;
    stamp = response.headers.get("ETag");
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const before = details();
    const words = document.querySelector(".filter")?.value ?? "";
    const open = new Set([...before.keys()].filter((key) => before.get(key).open));
    Idiomorph.morph(document.body, page.body, {
      morphStyle: "innerHTML",
      ignoreActiveValue: true,
      callbacks: {
        beforeAttributeUpdated: (name, node) => !(node.tagName === "INPUT" && name === "checked"),
      },
    });
    filter(words);
    for (const [key, each] of details()) each.open = open.has(key) || (each.open && !before.has(key));
    return true;
  }

  // --- the workers' lanes: a drag over the rows looks closer, Ctrl and the wheel zoom, links work in place ---

  let drag = null;

  function go(address) {
    history.pushState(null, "", address);
    stamp = null;
    refresh();
  }

  // The range that the lanes show, in seconds, and the place of `event` in it, from 0 to 1.
  function place(event, lane) {
    const section = document.getElementById("lanes");
    const box = lane.getBoundingClientRect();
    return {
      box,
      from: Number(section.dataset.from),
      to: Number(section.dataset.to),
      end: Number(section.dataset.end),
      at: Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)),
    };
  }

  function show(from, to, end) {
    from = Math.max(0, from);
    to = Math.min(end, to);
    if (to - from < 1e-5) return;
    const address = new URL(location.href);
    address.searchParams.set("from", from.toFixed(6));
    address.searchParams.set("to", to.toFixed(6));
    address.hash = "";
    go(address);
  }

  const lane_of = (event) => event.target.closest?.("#lanes > .time svg") ?? null;

  document.addEventListener("pointerdown", (event) => {
    const lane = event.button === 0 ? lane_of(event) : null;
    if (lane === null) return;
    event.preventDefault();
    const mark = document.body.appendChild(document.createElement("div"));
    mark.className = "picked";
    drag = {lane, mark, begin: place(event, lane).at};
  });
  document.addEventListener("pointermove", (event) => {
    if (drag === null) return;
    const {box, at} = place(event, drag.lane);
    const rows = drag.lane.parentElement.getBoundingClientRect();
    Object.assign(drag.mark.style, {
      left: `${scrollX + box.left + box.width * Math.min(at, drag.begin)}px`,
      width: `${box.width * Math.abs(at - drag.begin)}px`,
      top: `${scrollY + rows.top}px`,
      height: `${rows.height}px`,
    });
  });
  document.addEventListener("pointerup", (event) => {
    if (drag === null) return;
    const {from, to, end, at} = place(event, drag.lane);
    const [first, last] = [Math.min(at, drag.begin), Math.max(at, drag.begin)];
    drag.mark.remove();
    drag = null;
    if (last - first > 0.005) show(from + first * (to - from), from + last * (to - from), end);
  });
  document.addEventListener("wheel", (event) => {
    const lane = event.ctrlKey ? lane_of(event) : null;
    if (lane === null) return;
    event.preventDefault();
    const {from, to, end, at} = place(event, lane);
    const factor = event.deltaY < 0 ? 0.7 : 1 / 0.7;
    const middle = from + at * (to - from);
    show(middle - (middle - from) * factor, middle + (to - middle) * factor, end);
  }, {passive: false});
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("#lanes a") ?? null;
    if (link === null || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const address = new URL(link.href);
    address.hash = "";
    go(address);
  });
  addEventListener("popstate", () => {
    stamp = null;
    refresh();
  });

  // --- the list: only the rows with all of these words ---

  function filter(typed) {
    const field = document.querySelector(".filter");
    if (field === null) return;
    field.hidden = false;
    if (field.value !== typed) field.value = typed;
    const words = typed.toLowerCase().split(/\s+/);
    for (const row of document.querySelectorAll(".runs tbody tr")) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  }
  document.addEventListener("input", (event) => {
    if (event.target.classList.contains("filter")) filter(event.target.value);
  });
  filter("");

  async function again() {
    let goes_on = true;
    try {
      if (!document.hidden && drag === null) goes_on = await refresh();
    } catch {
      const status = document.querySelector(".status");
      if (status) status.textContent = "the viewer has ended";
    }
    if (goes_on) setTimeout(again, pause_ms);
  }
  setTimeout(again, pause_ms);
})();
