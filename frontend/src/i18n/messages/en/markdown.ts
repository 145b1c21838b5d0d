export const markdown = {
  remoteImage: "Image from {host}",
  openFile: "Open {name}",
  pictureFailed: "Couldn’t show the image {name}: it’s missing or damaged.",
  diagram: "Diagram",
  diagramLater: "The diagram will appear when it’s complete.",
  diagramFailed: "Couldn’t draw this diagram",
  table: "Table",
  copyCode: "Copy code",
  callout: { note: "Note", tip: "Tip", important: "Important", warning: "Warning", caution: "Caution" },
  footnotes: "Footnotes",
  footnoteBack: "Back to the text",
};
