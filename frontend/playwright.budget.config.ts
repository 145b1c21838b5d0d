import { defineConfig } from "@playwright/test";
import tests from "./playwright.config";

/** `make budget`: times, frames and DOM nodes against their limits. */
export default defineConfig({
  ...tests,
  testMatch: "budget.ts",
  timeout: 180_000,
  use: { ...tests.use, trace: "off", contextOptions: { reducedMotion: "no-preference" } },
});
