import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";
import type { Interrupt } from "../thread/session";
import { renderChat, sessionWith } from "../thread/test-session";
import InterruptCards from ".";

it("shows arguments as fields and lines, and the buttons in the order of what one decides", async () => {
  const call: Interrupt["calls"][number] = {
    id: null,
    name: "deploy",
    args: { body: "Dear all,\nit works.", options: { dry: true, tags: ["a", "b"] } },
    description: "the tool 'deploy' needs your approval",
    reason: "deerflow.ask",
    allowed: ["approve", "edit", "reject", "respond"],
    grants: [],
    sources: [],
  };
  renderChat(
    <InterruptCards />,
    sessionWith({ interrupts: [{ id: "i", value: {}, problem: null, calls: [call] }] }),
  );
  const card = await screen.findByRole("alertdialog", { name: "DeerFlow wants to run “deploy”" });
  const field = (name: string) => within(card).getByText(name).nextElementSibling?.textContent;
  expect(field("body")).toBe("Dear all,\nit works.");
  expect(field("options")).toBe("dry: true\ntags:\n  • a\n  • b");
  expect(card.textContent).not.toMatch(/[{}[\]]|needs your approval/);
  const buttons = within(card)
    .getAllByRole("button")
    .map(({ textContent }) => textContent);
  expect(buttons).toEqual(["Allow", "Don’t allow", "Change", "Reply for the tool"]);
});
