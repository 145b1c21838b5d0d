import { expect, test } from "./fixtures";

const MINUTES = Number(process.env.MINUTES ?? 5);

/** Of work without a pause; MB that are still in use when the garbage is gone. */
test("memory does not grow while one works for long", async ({ page, chat }) => {
  test.setTimeout((MINUTES + 3) * 60_000);
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("HeapProfiler.enable");
  await devtools.send("Performance.enable");
  const used = async () => {
    await devtools.send("HeapProfiler.collectGarbage");
    const { metrics } = await devtools.send("Performance.getMetrics");
    return metrics.find(({ name }) => name === "JSHeapUsedSize")!.value / (1 << 20);
  };
  const round = async () => {
    await chat.fresh();
    await chat.ask("markdown");
    await chat.ask("write");
    await page.getByRole("region", { name: "Files of this conversation" }).waitFor();
    await page.keyboard.press("ControlOrMeta+Shift+E");
    await page.keyboard.press("ControlOrMeta+k");
    await page.keyboard.press("Escape");
  };
  for (let n = 0; n < 3; n++) await round(); // code is loaded, caches are filled
  const before = await used();
  const end = Date.now() + MINUTES * 60_000;
  const seen = [before];
  for (; Date.now() < end; seen.push(await used())) await round();
  console.log(`${seen.length - 1} rounds, MB: ${seen.map((one) => one.toFixed(1)).join(" ")}`);
  // A chat more in the list, and what was loaded in the last minutes, are kept on purpose.
  expect(seen.at(-1)! - before).toBeLessThan(10 + 0.2 * seen.length);
});
