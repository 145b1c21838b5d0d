import { matches, SHORTCUTS } from "./shortcuts";

/**
 * Text that a person writes before the page's code has arrived: the HTML has a plain field, whose text is
 * carried over.
 */
const early = { text: "", focused: false, at: [0, 0] as [number, number] };

export const EARLY_FIELD = "early-message";

function look() {
  const field = document.getElementById(EARLY_FIELD);
  if (!(field instanceof HTMLTextAreaElement)) return;
  early.text = field.value;
  early.focused = document.activeElement === field;
  early.at = [field.selectionStart, field.selectionEnd];
}

let wantsPalette = false;

function onKey(event: KeyboardEvent) {
  if (!matches(SHORTCUTS.palette, event)) return;
  event.preventDefault();
  wantsPalette = !wantsPalette;
}

if (typeof document !== "undefined") {
  look();
  for (const event of ["input", "focusin", "selectionchange"]) document.addEventListener(event, look);
  document.addEventListener("keydown", onKey);
}

/** True if the palette was requested before its code arrived; from now on it handles its keys itself. */
export function takeEarlyPalette(): boolean {
  document.removeEventListener("keydown", onKey);
  const wanted = wantsPalette;
  wantsPalette = false;
  return wanted;
}

/** Goes on in `field` where the one before it was left. */
export function carryOn(field: HTMLTextAreaElement | null) {
  if (!field) return;
  const { focused, at } = early;
  if (field.id === EARLY_FIELD) field.value = early.text;
  if (!focused) return;
  const rest = field.value.length - early.text.length;
  field.focus();
  field.setSelectionRange(at[0] + rest, at[1] + rest);
}

export const earlyText = () => (early.text.trim() ? early.text : "");

/** The message field has it now. */
export function forgetEarly() {
  early.text = "";
  early.focused = false;
}
