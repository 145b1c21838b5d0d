export const markdown = {
  remoteImage: "Picture from {host}",
  openFile: "Open {name}",
  diagram: "Diagram",
  diagramLater: "The diagram appears when it is complete.",
  diagramFailed: "The diagram cannot be drawn",
  copyCode: "Copy code",
};
