const LANDMARKS = "main, nav, aside, header, section[aria-label]";

/**
 * The part of the page that an element belongs to, in which what opens from it is found: the outermost, since an inner one may clip.
 * undefined: there is none, or its dialog would clip.
 */
export function landmarkOf(opener: Element): Element | undefined {
  const dialog = opener.closest("[role=dialog]");
  if (dialog) return getComputedStyle(dialog).overflowY === "visible" ? dialog : undefined;
  let outermost: Element | undefined;
  for (let at = opener.closest(LANDMARKS); at; at = at.parentElement?.closest(LANDMARKS) ?? null)
    outermost = at;
  return outermost;
}
