import { fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { LocaleProvider } from "@/i18n";
import ReadAloud, { spokenOf } from "./read-aloud";

/** The browser's voice, which speaks nothing: an utterance ends when the test says so. */
const voice = { said: [] as SpeechSynthesisUtterance[], cancelled: 0 };
class Utterance {
  lang = "";
  onend: (() => void) | null = null;
  onerror: ((event: { error: string }) => void) | null = null;
  constructor(readonly text: string) {}
}

beforeEach(() => {
  voice.said = [];
  voice.cancelled = 0;
  vi.stubGlobal("SpeechSynthesisUtterance", Utterance);
  vi.stubGlobal("speechSynthesis", {
    speak: (one: SpeechSynthesisUtterance) => voice.said.push(one),
    cancel: () => (voice.cancelled += 1),
  });
});
afterEach(() => vi.unstubAllGlobals());

function answer(html: string): Element {
  const box = document.createElement("div");
  box.innerHTML = html;
  return box;
}

const end = () => voice.said.at(-1)!.onend!.call(voice.said.at(-1)!, {} as SpeechSynthesisEvent);

test("an answer is read line by line, each in its own language, without code and buttons", async () => {
  const html = `<h2>Report</h2><p>The ships wait for a berth in the port.<button>[1]</button></p><pre>rm -rf</pre>
    <p>船舶在港口等待泊位，并且还要等待很长很长时间，没有人知道什么时候。</p>`;
  render(
    <LocaleProvider>
      <ReadAloud turnId="t" answer={() => answer(html)} />
    </LocaleProvider>,
  );
  fireEvent.click(await screen.findByRole("button", { name: "Read aloud" }));
  end();
  end();
  expect(voice.said.map(({ text, lang }) => [text.slice(0, 14), lang])).toEqual([
    ["Report", expect.any(String)],
    ["The ships wait", "en"],
    ["船舶在港口等待泊位，并且还要", "zh-CN"],
  ]);
  end();
  expect(await screen.findByRole("button", { name: "Read aloud" })).toBeTruthy();
});

test("it stops when it is pressed again, and nothing follows", async () => {
  render(
    <LocaleProvider>
      <ReadAloud turnId="t" answer={() => answer("<p>One.</p><p>Two.</p>")} />
    </LocaleProvider>,
  );
  fireEvent.click(await screen.findByRole("button", { name: "Read aloud" }));
  fireEvent.click(await screen.findByRole("button", { name: "Stop reading" }));
  end();
  expect(voice.said).toHaveLength(1);
  expect(voice.cancelled).toBe(2);
});

test("rows of a table are lines, and cells have a pause between them", () => {
  const table = "<table><tr><th>Port</th><th>Ships</th></tr><tr><td>A</td><td>7</td></tr></table>";
  expect(spokenOf(answer(table)).trim()).toBe("Port, Ships\nA, 7");
});
