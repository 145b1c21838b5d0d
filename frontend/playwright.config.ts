import { defineConfig } from "@playwright/test";
import { CHROMIUM } from "./e2e/server";

/** Debian's Chromium; nothing is downloaded. Each worker starts its own gateway and model (e2e/server.ts). */
export default defineConfig({
  testDir: "e2e",
  testMatch: "*.spec.ts",
  grepInvert: /@nightly/,
  workers: 2,
  retries: process.env.CI ? 1 : 0,
  // What takes longer hangs, on a busy machine, too.
  timeout: 180_000,
  expect: { timeout: 30_000 },
  reporter: process.env.CI ? [["line"], ["./e2e/count.ts"]] : [["list"]],
  use: {
    viewport: { width: 1360, height: 860 },
    locale: "en-US",
    // Frames of animations take a sixth of the browser's CPU time. Nightly looks with motion.
    contextOptions: { reducedMotion: "reduce" },
    // A trace costs a quarter of the time: only what fails twice has one in CI.
    trace: process.env.CI ? "on-first-retry" : "retain-on-failure",
    launchOptions: { executablePath: CHROMIUM, args: ["--no-sandbox"] },
  },
});
