import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render, screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";
import { LateTexts, LocaleProvider } from "@/i18n";
import Pdf from "./pdf";
import { texts } from "./texts";

const file = {
  threadId: "t1",
  path: "/mnt/user-data/outputs/a paper.pdf",
  version: null,
  etag: '"7-b"',
  size: 9,
  mime: "application/pdf",
  modified: null,
};
const WHOLE = "%PDF-1.4\n1 0 obj\n<<>>\nendobj\nstartxref\n9\n%%EOF";
const shown = (viewer: boolean, content = WHOLE) => {
  vi.stubGlobal("fetch", async () => new Response(content));
  vi.stubGlobal("navigator", Object.create(navigator, { pdfViewerEnabled: { value: viewer } }));
  render(
    <QueryClientProvider client={new QueryClient()}>
      <LocaleProvider>
        <LateTexts of={texts}>
          <Pdf file={file} onPath={() => {}} />
        </LateTexts>
      </LocaleProvider>
    </QueryClientProvider>,
  );
};
const ADDRESS = /\/threads\/t1\/artifacts\/mnt\/user-data\/outputs\/a%20paper\.pdf\?of=7-b/;

afterEach(() => vi.unstubAllGlobals());

test("a PDF stands in the browser's own viewer at the width of the page, and again when it has changed", async () => {
  shown(true);
  const { src } = await screen.findByTitle<HTMLIFrameElement>("Document a paper.pdf");
  expect(src).toMatch(ADDRESS);
  expect(new URL(src).hash).toMatch(/navpanes=0.*view=FitH/);
});

test("where the browser has none, it opens in a tab of its own", async () => {
  shown(false);
  const link = await screen.findByRole<HTMLAnchorElement>("link");
  expect(link.href).toMatch(ADDRESS);
  expect([link.target, link.rel]).toEqual(["_blank", "noopener noreferrer"]);
});

test.each([
  ["its beginning", WHOLE.slice(8)],
  ["its objects", "%PDF-1.4 broken"],
  ["its end", WHOLE.slice(0, 30)],
])("a PDF without %s says that it is damaged", async (_, content) => {
  shown(true, content);
  expect(await screen.findByText("This PDF is damaged or incomplete")).toBeTruthy();
  expect(screen.queryByTitle("Document a paper.pdf")).toBeNull();
});
