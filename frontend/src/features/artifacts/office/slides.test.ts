import { expect, test } from "vitest";
import type { OfficePackage } from "./package";
import { readSlides } from "./slides";

test("what the speaker has noted stands with its slide, without the number of the page", async () => {
  const shape = (kind: string, text: string) =>
    `<sp><nvSpPr><nvPr><ph type="${kind}"/></nvPr></nvSpPr><txBody>${text}</txBody></sp>`;
  const line = "<p><r><t>Speak </t></r><r><t>slowly.</t></r><br/><r><t>Smile.</t></r></p>";
  const parts: Record<string, string> = {
    "ppt/presentation.xml": "<p><sldIdLst><sldId/></sldIdLst></p>",
    "slide.xml": "<s><cSld><spTree/></cSld></s>",
    "notes.xml": `<n><cSld><spTree>${shape("sldNum", "<p><fld><t>7</t></fld></p>")}${shape("body", `${line}<p/><p><r><t>End.</t></r></p>`)}</spTree></cSld></n>`,
  };
  // Without the id of the slide: happy-dom knows no namespaces of attributes.
  const relations: Record<string, [string, { target: string; type: string }][]> = {
    "ppt/presentation.xml": [["", { target: "slide.xml", type: "slide" }]],
    "slide.xml": [["n", { target: "notes.xml", type: "notesSlide" }]],
  };
  const office = {
    xml: async (part: string) =>
      parts[part] ? new DOMParser().parseFromString(parts[part], "text/xml").documentElement : null,
    relations: async (part: string) => new Map(relations[part]),
  } as unknown as OfficePackage;
  expect((await readSlides(office)).slides.map(({ notes }) => notes)).toEqual([
    "Speak slowly.\nSmile.\n\nEnd.",
  ]);
});
