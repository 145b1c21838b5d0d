import { afterEach, expect, it } from "vitest";
import { takeEarlyPalette } from "./early";

afterEach(() => document.body.replaceChildren());
const press = (key: string) => {
  const event = new KeyboardEvent("keydown", { key, ctrlKey: true, bubbles: true, cancelable: true });
  document.body.dispatchEvent(event);
  return event.defaultPrevented;
};

it("Ctrl+K before the page is there is kept for the palette, once, and left to it from then on", () => {
  expect(press("j")).toBe(false);
  expect(press("k")).toBe(true);
  expect(takeEarlyPalette()).toBe(true);
  expect(takeEarlyPalette()).toBe(false);
  expect(press("k")).toBe(false);
});
