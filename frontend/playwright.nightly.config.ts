import { defineConfig } from "@playwright/test";
import tests from "./playwright.config";

/** What is slow and rarely breaks: a monkey, and the page as a Node.js server of its own behind nginx (`make standalone` first). */
export default defineConfig({ ...tests, testMatch: ["monkey.ts", "proxy.ts"] });
