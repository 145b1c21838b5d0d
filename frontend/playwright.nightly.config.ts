import { defineConfig } from "@playwright/test";
import tests from "./playwright.config";

/** What is slow and rarely breaks: a monkey, memory (for MINUTES), the page as a server of its own behind nginx (`make standalone`). */
export default defineConfig({ ...tests, testMatch: ["memory.ts", "monkey.ts", "proxy.ts"] });
