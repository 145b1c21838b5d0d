import { expect, it } from "vitest";
import { folderOf } from "./paths";

it("says where a file lies", () => {
  expect(
    ["outputs/a.md", "outputs/x/y/a.md", "workspace/src/a.py"].map((one) =>
      folderOf(`/mnt/user-data/${one}`),
    ),
  ).toEqual(["", "x/y", "workspace/src"]);
});
