import { expect, test } from "vitest";
import { admit, LIMITS } from "./limits";

const file = (name: string, size: number) => ({ name, size }) as File;
const MB = 1 << 20;

test("a message takes what the server takes, and each refusal has its reason", () => {
  const incoming = [
    file("fits.txt", 1),
    file("__init__.py", 0),
    file("Editor.app", 10),
    file("film.mp4", LIMITS.fileBytes + 1),
    file("exactly.bin", LIMITS.fileBytes),
  ];
  const { accepted, refused } = admit([], incoming);
  expect(accepted.map((one) => one.name)).toEqual(["fits.txt", "__init__.py", "exactly.bin"]);
  expect(refused).toEqual([
    { name: "Editor.app", reason: "folder" },
    { name: "film.mp4", reason: "size" },
  ]);
});

test("files that are there already count, in number and in size", () => {
  const nineteen = Array.from({ length: 19 }, () => ({ size: 1 }));
  expect(admit(nineteen, [file("a", 1), file("b", 1)]).refused).toEqual([{ name: "b", reason: "count" }]);
  const heavy = Array.from({ length: 5 }, () => ({ size: 99 * MB }));
  expect(admit(heavy, [file("small", 5 * MB), file("one more", 1)]).refused).toEqual([
    { name: "one more", reason: "total" },
  ]);
});
