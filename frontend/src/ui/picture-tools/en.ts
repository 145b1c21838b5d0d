export const pictures = {
  enlarge: "Enlarge",
  save: "Save diagram",
  saveSvg: "Save as SVG",
  savePng: "Save as PNG",
  failed: "Couldn’t save the diagram as PNG. Save it as SVG instead.",
  zoomIn: "Zoom in",
  zoomOut: "Zoom out",
  fit: "Fit to window",
};

declare module "@/i18n" {
  interface Messages {
    pictures: typeof pictures;
  }
}
