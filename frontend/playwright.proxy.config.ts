import { defineConfig } from "@playwright/test";
import tests from "./playwright.config";

/** The page as a Node.js server of its own, with the gateway behind nginx: `make standalone` comes before. */
export default defineConfig({ ...tests, testMatch: "proxy.ts" });
