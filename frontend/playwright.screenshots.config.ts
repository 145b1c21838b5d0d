import { defineConfig } from "@playwright/test";
import tests from "./playwright.config";

/** `make screenshots`: pictures of each page and state, to be looked at. */
export default defineConfig({ ...tests, testMatch: "screenshots.ts", use: { ...tests.use, trace: "off" } });
