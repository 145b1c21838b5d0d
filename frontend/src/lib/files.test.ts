import { expect, it } from "vitest";
import { fileUrl, nameOf, pictureUrl, resolvePath, threadPathOf } from "./files";

it("addresses any name", () => {
  expect(fileUrl("t 1", "/mnt/user-data/outputs/a b/50%#?.md", { version: 2, etag: '"x"' })).toBe(
    "/api/threads/t%201/artifacts/mnt/user-data/outputs/a%20b/50%25%23%3F.md?version=2&of=x",
  );
  expect(nameOf("/mnt/user-data/outputs/site/")).toBe("site");
});

it("knows the files of a thread however they are linked", () => {
  expect(threadPathOf("/mnt/user-data/outputs/a%20b.png?x=1")).toBe("/mnt/user-data/outputs/a b.png");
  expect(threadPathOf("sandbox:/mnt/user-data/outputs/a.png")).toBe("/mnt/user-data/outputs/a.png");
  expect(threadPathOf("/mnt/user-data/%2e%2e/%2e%2e/etc/passwd")).toBeNull();
  expect(threadPathOf("/etc/passwd")).toBeNull();
});

it.each([
  ["chart.png", "/mnt/user-data/outputs/sub/chart.png"],
  ["./img/a%20b.png#x", "/mnt/user-data/outputs/sub/img/a b.png"],
  ["../data.csv?x=1", "/mnt/user-data/outputs/data.csv"],
  ["/mnt/user-data/uploads/a.csv", "/mnt/user-data/uploads/a.csv"],
  ["sandbox:/mnt/user-data/outputs/a.csv", "/mnt/user-data/outputs/a.csv"],
  ["../../../../etc/passwd", null],
  ["/etc/passwd", null],
  ["https://example.org/a.png", null],
  ["//example.org/a.png", null],
  ["javascript:alert(1)", null],
  ["data:text/html,x", null],
  ["#there", null],
  ["", null],
])("a link to %j leads to %s", (link, expected) =>
  expect(resolvePath("/mnt/user-data/outputs/sub/report.md", link)).toBe(expected),
);

it("loads pictures of the thread and of the text, never from elsewhere", () => {
  expect(pictureUrl("t", "/mnt/user-data/outputs/a.png")).toBe(
    "/api/threads/t/artifacts/mnt/user-data/outputs/a.png",
  );
  expect(pictureUrl("t", "data:image/png;base64,AAAA")).toMatch(/^data:/);
  expect(pictureUrl("t", "data:image/svg+xml;base64,AAAA")).toBeNull();
  expect(pictureUrl("t", "https://example.com/pixel.png")).toBeNull();
  expect(pictureUrl("t", "//example.com/pixel.png")).toBeNull();
  expect(pictureUrl("t", "/api/threads/u/runs/r/stream")).toBeNull();
});
