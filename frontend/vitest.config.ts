import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const TESTS = "src/**/*.test.{ts,tsx}";
/** Listens to the document from its import on, as it does below other tests. */
const ALONE = "src/lib/early.test.ts";

export default defineConfig({
  plugins: [react()],
  resolve: { alias: { "@": new URL("./src", import.meta.url).pathname } },
  test: {
    environment: "happy-dom",
    testTimeout: 60_000,
    setupFiles: ["src/test-setup.ts"],
    reporters: ["default", "./scripts/vitest-count.ts"],
    // A window for each file would take five times the CPU time of all tests: test-setup.ts clears the one they share.
    projects: [
      { extends: true, test: { name: "shared", include: [TESTS], exclude: [ALONE], isolate: false } },
      { extends: true, test: { name: "alone", include: [ALONE] } },
    ],
  },
});
