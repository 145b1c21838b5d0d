export const markdown = {
  remoteImage: "Image from {host}",
  openFile: "Open {name}",
  diagram: "Diagram",
  diagramLater: "The diagram will appear when it’s complete.",
  diagramFailed: "Couldn’t draw this diagram",
  table: "Table",
  copyCode: "Copy code",
  callout: { note: "Note", tip: "Tip", important: "Important", warning: "Warning", caution: "Caution" },
  footnotes: "Footnotes",
  footnoteBack: "Back to the text",
};
