import { expect, test } from "vitest";
import { forgetOwn, own, readStored, setOwner, writeStored } from "./storage";

test("what an account wrote is gone when it signs out, what belongs to the device stays", () => {
  setOwner("ada");
  writeStored(own("draft.new"), { text: "secret" });
  writeStored("locale", "zh");
  sessionStorage.setItem(`deerflow.${own("draftThread")}`, "t");
  forgetOwn();
  expect(Object.keys(localStorage)).toEqual(["deerflow.locale"]);
  expect(sessionStorage).toHaveLength(0);
  writeStored(own("draft.new"), { text: "a draft that was about to be saved" });
  expect(readStored(own("draft.new"), null)).toBeNull();
});

test("a page goes on writing for whom it was opened, even if another account signs in elsewhere", () => {
  setOwner("grace");
  expect(own("draft.new")).toBe("ada.draft.new");
});
