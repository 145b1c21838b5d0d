import { defineConfig } from "@playwright/test";
import tests from "./playwright.config";

/**
 * What is slow and rarely breaks: a monkey, memory (for MINUTES), the page as a server of its own behind nginx (`make standalone`),
 * and what is tried in one width or colour elsewhere.
 */
export default defineConfig({
  ...tests,
  workers: 1, // memory is measured
  grepInvert: undefined,
  projects: [
    { name: "long", testMatch: ["memory.ts", "monkey.ts", "proxy.ts"] },
    { name: "looks", grep: /@nightly/ },
  ],
});
