"use client";
import { useEffect } from "react";

/**
 * Keeps the keyboard's place in the page: when the focused element goes, the focus moves on instead of falling
 * to the body. One mechanism for all parts that close, re-render, are deleted or become disabled.
 */

const REMEMBERED = 40;
const FOCUSABLE = "a[href], button, input, select, textarea, summary, [contenteditable=true], [tabindex]";
/** Rows that come and go with scrolling. */
const PASSING = "[data-passing]";
const ENTRY = "li, tr, [role=listitem], [role=row], [role=treeitem]";

/** An element as it can be found again after a re-render. */
interface Place {
  element: HTMLElement;
  /** From its parent upwards. */
  around: readonly Element[];
  name: string;
  /** Id of the row that it is in (`data-entry`), wherever that moves. */
  entry: string | null;
}

export function keepFocus(page: Document): () => void {
  let past: readonly Place[] = [];
  let current: Place | null = null;
  let moving = false;
  let frame = 0;
  /** By part that was added: what had the focus then. */
  const openers = new WeakMap<Node, Place>();
  /** By part that was removed: what stood beside it. */
  const neighbours = new WeakMap<Node, readonly Node[]>();
  /** By part that was removed: what came into its parent at once. */
  const successors = new WeakMap<Node, readonly Node[]>();

  const note = (target: EventTarget | null) => {
    if (!isElement(target) || target === page.body) return;
    current = placeOf(target);
    // Where this mechanism has put the focus says nothing of where the person was.
    if (!moving) past = [...past.filter(({ element }) => element !== target), current].slice(-REMEMBERED);
  };
  const onFocus = ({ target }: FocusEvent) => note(target);
  const check = () => {
    const active = page.activeElement;
    const isSomewhere = active && active !== page.body && !active.matches(":disabled");
    if (!current || isSomewhere) return;
    const lost = current;
    current = null;
    if (canFocus(lost.element)) return; // the person let it go
    moving = true;
    const next = landing(lost);
    if (next) next.focus({ preventScroll: true });
    else current = lost; // another page is on its way
    moving = false;
  };
  const landing = (lost: Place): HTMLElement | null => {
    const root = rootOf(lost);
    const outer = lost.around.filter((one) => one.isConnected);
    if (root.matches(PASSING)) return outer.find(isLanding) ?? null;
    if (root.querySelector("main")) return [...page.querySelectorAll("main")].find(isLanding) ?? null;
    const opener = openers.get(root);
    return (
      again(lost) ??
      entryBeside(root) ??
      (opener ? (again(opener) ?? entryBeside(rootOf(opener)) ?? inPlaceOf(rootOf(opener))) : null) ??
      first([...past].reverse(), again) ??
      first(outer, firstIn)
    );
  };
  const entryBeside = (root: Element) =>
    root.matches(ENTRY) ? first(neighbours.get(root) ?? [], within) : null;
  const inPlaceOf = (root: Element) => first(successors.get(root) ?? [], within);
  const onChange = (records: readonly MutationRecord[]) => {
    for (const { target, addedNodes, removedNodes, nextSibling, previousSibling } of records) {
      for (const node of addedNodes) {
        const opener = past.findLast(({ element }) => !node.contains(element));
        if (opener) openers.set(node, opener);
      }
      for (const node of removedNodes) {
        neighbours.set(
          node,
          [nextSibling, previousSibling].filter((one) => one !== null),
        );
        const come = records.filter((one) => one.target === target).flatMap((one) => [...one.addedNodes]);
        successors.set(node, come);
      }
    }
    look();
  };
  const look = () => {
    if (!current || frame) return;
    frame = requestAnimationFrame(() => {
      frame = 0;
      check();
    });
  };
  const observer = new MutationObserver(onChange);
  const attributeFilter = ["disabled", "hidden", "inert"];
  observer.observe(page.body, { childList: true, subtree: true, attributes: true, attributeFilter });
  page.addEventListener("focusin", onFocus);
  page.addEventListener("focusout", look);
  // Someone may write already. Where a dialog is open, nothing is known of what opened it.
  if (!page.activeElement?.closest("[role=dialog]")) note(page.activeElement);
  return () => {
    observer.disconnect();
    cancelAnimationFrame(frame);
    page.removeEventListener("focusin", onFocus);
    page.removeEventListener("focusout", look);
  };
}

/** All of it that is gone. */
const rootOf = ({ element, around }: Place) =>
  [...around].reverse().find((one) => !one.isConnected) ?? element;

const isElement = (target: unknown): target is HTMLElement => target instanceof HTMLElement;

function placeOf(element: HTMLElement): Place {
  const around: Element[] = [];
  for (let one = element.parentElement; one; one = one.parentElement) around.push(one);
  const entry = element.closest("[data-entry]")?.getAttribute("data-entry") ?? null;
  return { element, around, name: nameOf(element), entry };
}

const nameOf = (element: Element) =>
  element.getAttribute("aria-label") ?? element.textContent.trim().slice(0, 80);

/** It, or what was drawn in its place: in the same row, or with the same name at the same place below what is left of its surroundings. */
function again({ element, around, name, entry }: Place): HTMLElement | null {
  if (canFocus(element)) return element;
  if (element.isConnected || !name) return null;
  const moved = entry && element.ownerDocument.querySelector(`[data-entry="${CSS.escape(entry)}"]`);
  if (moved) {
    const inside = [...moved.querySelectorAll<HTMLElement>(element.localName)];
    return inside.find((one) => nameOf(one) === name && canFocus(one)) ?? firstIn(moved);
  }
  const depth = around.findIndex((one) => one.isConnected);
  if (depth < 0) return null;
  const path = [...around.slice(0, depth).reverse(), element].map((one) => one.localName).join(" > ");
  const alike = around[depth]!.querySelectorAll<HTMLElement>(`:scope > ${path}`);
  return [...alike].find((one) => nameOf(one) === name && canFocus(one)) ?? null;
}

function canFocus(element: Element): boolean {
  if (!element.isConnected || element.matches(":disabled")) return false;
  if (element.closest("[inert], [hidden], [aria-hidden=true]")) return false;
  return element.checkVisibility?.() ?? true;
}

const isLanding = (element: Element): element is HTMLElement =>
  element.matches(FOCUSABLE) && canFocus(element);

/** The first that can be reached by Tab; else it itself. */
function firstIn(part: Element): HTMLElement | null {
  const inside = [...part.querySelectorAll<HTMLElement>(FOCUSABLE)];
  return inside.find((one) => one.tabIndex >= 0 && canFocus(one)) ?? (isLanding(part) ? part : null);
}

const within = (node: Node) => (isElement(node) ? firstIn(node) : null);

function first<Item, Found>(items: readonly Item[], find: (item: Item) => Found | null): Found | null {
  for (const item of items) {
    const found = find(item);
    if (found) return found;
  }
  return null;
}

/** Keeps the focus as long as it is part of the page. */
export function KeepFocus() {
  useEffect(() => keepFocus(document), []);
  return null;
}
