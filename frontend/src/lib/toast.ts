"use client";

type Toast = (typeof import("sonner"))["toast"];
const loaded = async () => (await import("sonner")).toast;

/** Short notices. What shows them is not needed to show a page, so it comes with the first of them. */
export const toast = {
  success: (...told: Parameters<Toast["success"]>) => void loaded().then((show) => show.success(...told)),
  warning: (...told: Parameters<Toast["warning"]>) => void loaded().then((show) => show.warning(...told)),
  error: (...told: Parameters<Toast["error"]>) => void loaded().then((show) => show.error(...told)),
};
