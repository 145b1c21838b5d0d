import { defineConfig } from "@playwright/test";
import tests from "./playwright.config";

/**
 * What is slow and rarely breaks: a monkey, memory (for MINUTES), the page as a server of its own behind nginx (`make standalone`),
 * and all tests of the page with its animations, in further widths and colours.
 */
export default defineConfig({
  ...tests,
  workers: 1, // memory is measured
  grepInvert: undefined,
  use: { ...tests.use, contextOptions: { reducedMotion: "no-preference" } },
  projects: [{ name: "long", testMatch: ["memory.ts", "monkey.ts", "proxy.ts"] }, { name: "looks" }],
});
