import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, test } from "@playwright/test";

const OUT = resolve(import.meta.dirname, "../out");

/** In kB, as it is sent. */
const sizeOf = (file: string) => gzipSync(readFileSync(join(OUT, file)), { level: 9 }).length / 1024;

/** Scripts that a page loads before it can be used. */
function firstLoad(page: string): number {
  const html = readFileSync(join(OUT, page), "utf8");
  const scripts = [...html.matchAll(/<script[^>]*\ssrc="([^"]+)"[^>]*>/g)].filter(
    ([tag]) => !/\snomodule\b/i.test(tag),
  );
  return [...new Set(scripts.map(([, src]) => src!))].reduce((sum, src) => sum + sizeOf(src), 0);
}

test("first loads and chunks are small", () => {
  expect.soft(firstLoad("chats.html"), "/chats").toBeLessThanOrEqual(340);
  for (const page of ["login", "setup", "settings", "404"])
    expect.soft(firstLoad(`${page}.html`), `/${page}`).toBeLessThanOrEqual(220);
  const chunks = readdirSync(join(OUT, "_next/static"), { recursive: true }).filter((name) =>
    String(name).endsWith(".js"),
  );
  const largest = Math.max(...chunks.map((name) => sizeOf(join("_next/static", String(name)))));
  expect(largest, "largest chunk").toBeLessThanOrEqual(250);
});
