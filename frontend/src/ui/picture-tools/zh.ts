import type { pictures as english } from "./en";

export const pictures: typeof english = {
  enlarge: "放大",
  save: "保存图表",
  saveSvg: "保存为 SVG",
  savePng: "保存为 PNG",
  failed: "无法将图表保存为 PNG，请改为保存为 SVG。",
  zoomIn: "放大",
  zoomOut: "缩小",
  fit: "适应窗口",
};
