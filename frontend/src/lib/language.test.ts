import { expect, test } from "vitest";
import { languageOf } from "./language";

test.each([
  ["The ships wait for a berth, and that is the reason for this report.", "en"],
  ["Die Schiffe warten auf einen Liegeplatz, und das ist nicht neu für den Hafen.", "de"],
  ["Les navires attendent dans le port et les quais sont pleins pour une semaine.", "fr"],
  ["船舶在港口等待泊位。", "zh-CN"],
  ["使用 React 和 TypeScript 编写前端页面，并部署到服务器。", "zh-CN"],
  ["船が港で待っています。", "ja"],
  ["배가 항구에서 기다립니다.", "ko"],
  ["Корабли ждут в порту.", "ru"],
  ["السفن تنتظر في الميناء", "ar"],
  ["האוניות ממתינות בנמל", "he"],
])("%s is %s", (text, language) => expect(languageOf(text, "xx")).toBe(language));

test("what says too little has the language around it", () => {
  for (const text of ["", "42 %", "OK", "React"]) expect(languageOf(text, "de")).toBe("de");
});
