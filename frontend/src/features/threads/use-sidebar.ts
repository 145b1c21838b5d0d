"use client";
import { useStored } from "@/lib/storage";

/** True if this device shows the sidebar in full; on narrow screens it is a drawer, which does not count here. */
export function useSidebar() {
  const [collapsed, set] = useStored("sidebarCollapsed", false);
  return { collapsed, toggle: () => set(!collapsed) };
}
