/** Texts of file viewers and reports. */
export const viewers = {
  site: {
    title: "Preview of {name}",
    reload: "Reload",
    network: "Internet",
    networkOff:
      "This page has no internet access. It can’t send data anywhere or load anything from other sites.",
    networkOn: "This page can load content from other servers, so they may learn what it shows.",
    allow: "Allow internet access",
    expired: "Couldn’t open the preview",
  },
  image: { zoom: "Size", fit: "Fit", full: "100 %" },
  report: {
    pdf: "Save as PDF",
    docx: "Save as Word",
    ready: "{name} is downloading",
    partly: "{name} is downloading, but something is missing",
    failed: "Couldn’t make {name}",
  },
  pdf: {
    title: "Document {name}",
    damaged: "This PDF is damaged or incomplete",
    damagedText: "Your browser may still be able to open it in a new tab. If not, ask for the file again.",
    none: "Your browser can’t show PDFs here",
    noneText: "Open it in a new tab, or download it.",
    open: "Open in a new tab",
  },
  table: {
    label: "Table {name}",
    row: "Row",
    rows: "{n, plural, one {# row} other {# rows}}",
    first: "{n, plural, one {First row} other {First # rows}}",
    firstOf: "First {n, number} of {all, number} rows",
    columns: "{n, plural, one {# column} other {# columns}}",
    sortBy: "Sort by {name}",
    column: "Column {n}",
    none: "No rows",
  },
  json: { broken: "This isn’t valid JSON: see line {line}, column {column}." },
  notebook: { label: "Notebook {name}", error: "Error", output: "Output", picture: "Image from a cell" },
  media: { audio: "Audio {name}", video: "Video {name}", failed: "Your browser can’t play this file." },
  office: {
    tooLarge: "This document is too large to preview",
    encrypted: "This document is password-protected",
    old: "No preview for this older Office format",
    damaged: "This document is damaged and can’t be previewed",
    sheets: "Sheets",
    slide: "Slide {n} of {all}",
    uncalculated: "{formula} (not calculated)",
    uncalculatedShort: "(not calculated)",
    header: "Header",
    footer: "Footer",
    notes: "Notes and comments",
    comments: "Comments of this sheet",
    speakerNotes: "Speaker notes",
    comment: "Comment",
    commentBy: "Comment by {author}",
    notDrawn: "Chart or object: download to see it",
    notDrawnWords: "Not shown here: {words}",
  },
  unknown: {
    office: "No preview for office documents",
    archive: "No preview for archives",
    binary: "No preview for this kind of file",
    text: "Download it to open it on your device.",
    type: "Type",
    size: "Size",
    modified: "Modified",
    path: "Path",
  },
};

declare module "@/i18n" {
  interface Messages {
    viewers: typeof viewers;
  }
}
