import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [react()],
  resolve: { alias: { "@": new URL("./src", import.meta.url).pathname } },
  test: {
    environment: "happy-dom",
    include: ["src/**/*.test.{ts,tsx}"],
    testTimeout: 60_000,
    setupFiles: ["src/test-setup.ts"],
    reporters: ["default", "./scripts/vitest-count.ts"],
  },
});
