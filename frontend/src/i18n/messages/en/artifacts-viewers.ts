/** The part of `artifacts` that viewers say. */
export const viewers = {
  site: {
    title: "Preview of {name}",
    reload: "Reload",
    network: "Internet",
    networkOff:
      "This page has no internet access: it cannot send anything away, and nothing from elsewhere loads.",
    networkOn: "This page may load from other servers, and so tell them what it shows.",
    allow: "Allow internet access",
    expired: "The preview could not be opened",
  },
  image: {
    zoom: "Size",
    fit: "Fit",
    full: "100 %",
    alt: "Picture {name}",
    failed: "The picture cannot be shown",
  },
  pdf: {
    title: "Document {name}",
    none: "Your browser shows no PDF here",
    noneText: "Open it in a new tab, or download it.",
    open: "Open in a new tab",
  },
  table: {
    label: "Table {name}",
    row: "Row",
    rows: "{n, plural, one {# row} other {# rows}}",
    columns: "{n, plural, one {# column} other {# columns}}",
    sortBy: "Sort by {name}",
    column: "Column {n}",
    none: "There are no rows",
  },
  notebook: { label: "Notebook {name}", error: "Error", output: "Output", picture: "Picture made by a cell" },
  media: { audio: "Audio {name}", video: "Video {name}", failed: "Your browser cannot play this file." },
  unknown: {
    office: "No preview for office documents",
    archive: "No preview for archives",
    binary: "No preview for this kind of file",
    text: "Download it to open it on your device.",
    type: "Type",
    size: "Size",
    modified: "Changed",
    path: "Path",
  },
};
