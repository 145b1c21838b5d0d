import { renderHook } from "@testing-library/react";
import { expect, test } from "vitest";
import { useFocusBack } from "./focus-back";

test("what an item of a menu opened gives the focus back to the menu's trigger", () => {
  document.body.innerHTML =
    '<button id="more">More</button><div role="menu" aria-labelledby="more"><div role="menuitem" tabindex="-1">Delete</div></div>';
  document.querySelector<HTMLElement>('[role="menuitem"]')!.focus();
  const { result } = renderHook(() => useFocusBack());
  document.querySelector('[role="menu"]')!.remove();
  const event = new Event("close", { cancelable: true });
  result.current(event);
  expect(event.defaultPrevented).toBe(true);
  expect(document.activeElement?.id).toBe("more");
});
