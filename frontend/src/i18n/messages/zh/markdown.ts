import type * as en from "../en/markdown";

export const markdown: typeof en.markdown = {
  remoteImage: "来自 {host} 的图片",
  openFile: "打开 {name}",
  pictureFailed: "无法显示图片 {name}：文件不存在或已损坏。",
  diagram: "图表",
  diagramLater: "图表完整后会显示在这里。",
  diagramFailed: "图表无法绘制",
  table: "表格",
  copyCode: "复制代码",
  callout: { note: "说明", tip: "提示", important: "重要", warning: "警告", caution: "当心" },
  footnotes: "脚注",
  footnoteBack: "返回正文",
};
