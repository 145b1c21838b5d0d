import { expect, test } from "vitest";
import { server as english } from "./messages/en/server";
import { server as chinese } from "./messages/zh/server";
import { worded } from "./worded";

const zh = (refusal: Parameters<typeof worded>[2]) => worded("zh", chinese.error, refusal);
const detail = "big.csv is too large: a file may have 50 MB.";

test("the finest cause that is known is worded, with its values", () => {
  const values = { name: "big.csv", megabytes: 50, total: 100 };
  const refusal = { code: "too_large", reason: "file_too_large", values, detail };
  expect(zh(refusal)).toBe("big.csv 过大。单个文件不超过 50 MB，一次上传合计不超过 100 MB。");
  expect(zh({ ...refusal, reason: "newer_than_this_page" })).toBe(`内容过大：${detail}`);
  expect(worded("en", english.error, { code: "too_large", detail })).toBe(detail);
});

test("what is not known, or lacks a value, is the server’s sentence as it is", () => {
  const said = "A {brace}, a <tag> and 中文";
  expect(zh({ code: "constructor", detail: said })).toBe(said);
  expect(zh({ detail: said })).toBe(said);
  expect(zh({ code: "too_large", reason: "file_too_large", values: { name: "x" }, detail: said })).toBe(said);
  expect(zh({ code: "not_found", detail: said })).toBe(`找不到，可能已被删除：${said}`);
});
