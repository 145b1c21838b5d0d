import { expect, test } from "vitest";
import { isAcceptable, passwordRules } from "./password-rules";

const broken = (password: string) => passwordRules(password).flatMap((rule) => (rule.kept ? [] : [rule.id]));

test("a good password keeps all rules", () => {
  for (const good of ["deerflow-2026", "correct horse", "密码要够长才安全", "MyPassword1!"])
    expect(broken(good), good).toEqual([]);
});

test("a short one is told so, counted in characters as the server counts", () => {
  expect(broken("abc4567")).toEqual(["ruleLength"]);
  expect(broken("🦌🦌🌲🌲")).toContain("ruleLength"); // four, although eight UTF-16 units
});

test("what everybody takes is refused before it is sent", () => {
  for (const common of [
    "password1",
    "PASSWORD123",
    "12345678",
    "87654321",
    "aaaaaaaa",
    "abababab",
    "qwerty123",
    "deerflow",
  ])
    expect(isAcceptable(common), common).toBe(false);
});
