import { useState } from "react";

/**
 * Gives the focus back to where it was when a dialog opened. Radix does so for a dialog's own trigger only, and an item of a menu is
 * gone by then: its menu's trigger takes the focus.
 */
export function useFocusBack() {
  const [before] = useState(opener); // the content mounts when the dialog opens
  return (event: Event) => {
    if (!(before instanceof HTMLElement) || before === document.body) return;
    event.preventDefault();
    const elsewhere = document.activeElement && document.activeElement !== document.body;
    if (!elsewhere) before.focus({ preventScroll: true });
  };
}

function opener(): Element | null {
  const active = document.activeElement;
  const trigger = active?.closest('[role="menu"]')?.getAttribute("aria-labelledby");
  return (trigger && document.getElementById(trigger)) || active;
}
