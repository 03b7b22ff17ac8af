// Asks for the page again while it can change, and replaces what is different: scroll position, open details
// and the selection stay. Without script the page is what it was when it was loaded.
"use strict";
(() => {
  const EVERY_MS = 2000;
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
    const news = document.querySelector(".news");
    const said = response.headers.get("X-Headrace-News");
    if (news && said && news.textContent !== said) news.textContent = said;
    if (response.status !== 200) return response.status === 304;
    stamp = response.headers.get("ETag");
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const before = details();
    const open = new Set([...before.keys()].filter((key) => before.get(key).open));
    Idiomorph.morph(document.body, page.body, {
      morphStyle: "innerHTML",
      ignoreActiveValue: true,
      callbacks: {
        beforeAttributeUpdated: (name, node) => !(node.tagName === "INPUT" && name === "checked"),
      },
    });
    for (const [key, each] of details()) each.open = open.has(key) || (each.open && !before.has(key));
    return true;
  }

  async function again() {
    let goes_on = true;
    try {
      if (!document.hidden) goes_on = await refresh();
    } catch {
      const news = document.querySelector(".news");
      if (news) news.textContent = "the viewer has ended";
    }
    if (goes_on) setTimeout(again, EVERY_MS);
  }
  setTimeout(again, EVERY_MS);
})();
