import { defineConfig } from "@playwright/test";

/** Debian's Chromium; the pages, the gateway and the model are there already (test_foreign_uis.py). */
export default defineConfig({
  testMatch: "*.spec.mjs",
  workers: 1,
  timeout: 180_000,
  expect: { timeout: 60_000 },
  reporter: "list",
  use: {
    baseURL: process.env.PAGES_URL,
    launchOptions: { executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] },
  },
});
