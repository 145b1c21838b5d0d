import { expect, it } from "vitest";
import { callouts } from "./callouts";

const text = (value: string) => ({ type: "text", value });
const element = (tagName: string, ...children: object[]) => ({ type: "element", tagName, children });
const quote = (...paragraph: object[]) => element("blockquote", text("\n"), element("p", ...paragraph));

function kindOf(node: object): unknown {
  callouts()(node);
  return (node as { properties?: Record<string, unknown> }).properties?.["data-callout"];
}

it("the mark alone in the first line makes a callout, in capitals or not", () => {
  expect(kindOf(quote(text("[!NOTE]\nUseful.")))).toBe("note");
  expect(kindOf(quote(text("[!caution] \n"), element("strong", text("Hot"))))).toBe("caution");
  expect(kindOf(quote(text("[!TIP]"), element("br"), text("\nShort")))).toBe("tip");
  expect(kindOf(quote(text("[!WARNING]")))).toBe("warning");
});

it("anything else stays a quotation", () => {
  expect(kindOf(quote(text("[!NOTE] and more")))).toBeUndefined();
  expect(kindOf(quote(text("[!NOTE]"), element("em", text("more"))))).toBeUndefined();
  expect(kindOf(quote(text("[!SECRET]\nwords")))).toBeUndefined();
  expect(kindOf(quote(text("He wrote [!NOTE]\nthere")))).toBeUndefined();
  expect(kindOf(element("p", text("[!NOTE]\nwords")))).toBeUndefined();
});

it("nothing is left of the mark", () => {
  const node = quote(text("[!NOTE]\nUseful."));
  callouts()(node);
  expect(JSON.stringify(node)).not.toContain("[!");
  const bare = element("blockquote", element("p", text("[!TIP]")), element("ul"));
  callouts()(bare);
  expect(bare.children).toEqual([element("ul")]);
});
