import { expect, test } from "./fixtures";
import { allowNotices, look, notices } from "./looking";

test("the end of a run notifies people who look elsewhere, and no one who watches @nightly", async ({
  page,
  chat,
  gateway,
}) => {
  await allowNotices(page, gateway.url);
  await chat.ask("hello");
  await chat.sees(/tokens · \$/); // it is known how the run came out
  await expect(page).toHaveTitle(/^A scripted conversation/);
  expect(await notices(page)).toEqual([]);

  await chat.say("many 3");
  await look(page, "elsewhere");
  await expect
    .poll(() => notices(page))
    .toEqual([{ title: "A scripted conversation: done", body: "I looked at 3 parts. Nothing is missing." }]);
  await expect(page).toHaveTitle(/^✓ A scripted conversation/);
  await look(page, "here");
  await expect(page).toHaveTitle(/^A scripted conversation/);
});

test("whoever looks elsewhere is called for a decision and for a failure, but not for what they stopped", async ({
  page,
  chat,
  gateway,
}) => {
  await allowNotices(page, gateway.url);
  const titles = async () => (await notices(page)).map(({ title }) => title.split(": ").at(-1));
  await chat.say("slow 400");
  await chat.sees(/step 3 of 400/);
  await look(page, "elsewhere");
  await chat.stop.click();
  await chat.sees("Stopped. The work so far is saved.");
  await chat.say("approve echo one");
  await expect.poll(titles).toEqual(["waiting for you"]);
  await page.getByRole("button", { name: "Allow", exact: true }).click();
  await expect.poll(titles).toEqual(["waiting for you", "done"]);
  await chat.say("error 401");
  await expect.poll(titles).toEqual(["waiting for you", "done", "failed"]);
});
