import { expect, test } from "./fixtures";

test("a summary leaves a mark that opens, in its branch alone, and nothing is lost", async ({
  page,
  chat,
}) => {
  await chat.ask("write");
  await page.getByRole("button", { name: "Close files" }).click();
  await chat.ask("hello again");

  await page.getByRole("button", { name: /^Context:/ }).click();
  const table = page.getByRole("dialog");
  for (const part of ["Instructions", "Tools", "Messages", "Tool results", "Free"])
    await expect(table.getByRole("row", { name: new RegExp(`^${part}`) })).toBeVisible();
  await table.getByLabel("What matters most (optional)").fill("the growth figures");
  await table.getByRole("button", { name: "Compact" }).click();
  await expect(table).toBeHidden();
  await chat.sees(/Summarized \d+ messages/);
  await chat.done();
  await chat.sees("/compact the growth figures");

  const mark = chat.log.getByRole("region", { name: "Summarized for the model" });
  await expect(mark).toHaveText(/[\d.]+k? → [\d.]+k? tokens/);
  await mark.getByRole("button").click();
  await expect(mark.getByText("Growth is given as 34 %")).toBeVisible();
  await mark.getByRole("radio", { name: "What it stands for" }).click();
  const replaced = mark.getByRole("listitem");
  await expect(replaced).toHaveCount(2);
  await expect(replaced.first()).toContainText("You: write kept word for word");
  await expect(replaced.first()).toContainText("steps) ");
  await expect(replaced.last()).toContainText("hello again");
  await chat.sees("The report is ready");
  await chat.sees("hello again");

  await page.getByRole("button", { name: /^Context:/ }).click();
  await expect(table.getByRole("row", { name: /^Summary/ })).toBeVisible();
  await page.keyboard.press("Escape");

  await page.reload();
  await expect(mark).toBeVisible();
  const place = async () => (await mark.boundingBox())!.y;
  const before = await place();
  await mark.getByRole("button").click();
  await expect(mark.getByText("Growth is given as 34 %")).toBeVisible();
  expect(await place()).toBeCloseTo(before, 0);
  const exported = await page.request.get(`/api/threads/${page.url().split("/").at(-1)}/export?format=md`);
  expect(await exported.text()).toContain("<summary>Summarized for the model");

  const second = chat.log.getByRole("article").filter({ hasText: "hello again" });
  await second.hover();
  await second.getByRole("button", { name: "Edit message" }).click();
  await page.getByRole("textbox", { name: "Your message" }).fill("hello instead");
  await page.keyboard.press("ControlOrMeta+Enter");
  await chat.sees("hello instead");
  await chat.done();
  await expect(mark).toBeHidden();
  await page.getByRole("button", { name: "Earlier version" }).click();
  await expect(mark).toBeVisible();
});

test("/compact is found among the commands, and runs at once or with what to keep", async ({
  page,
  chat,
}) => {
  const found = page.getByRole("option", { selected: true });
  await chat.ask("hello");
  await chat.field.pressSequentially("/comp");
  await expect(found).toHaveText(/^\/compact.*Tab to say what to keep$/);
  await chat.field.press("Enter");
  await expect(chat.field).toHaveValue("");
  await chat.sees(/Summarized 2 messages/);
  await chat.done();

  await chat.ask("hello again");
  await chat.field.pressSequentially("/comp");
  await expect(found).toHaveText(/^\/compact/);
  await chat.field.press("Tab");
  await expect(chat.field).toHaveValue("/compact ");
  await page.keyboard.type("the figures");
  await chat.field.press("Enter");
  await chat.sees("/compact the figures");
  await expect(chat.log.getByText(/Summarized \d+ messages/)).toHaveCount(2);
});
