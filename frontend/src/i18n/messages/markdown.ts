export const en = {
  remoteImage: "Picture from {host}",
  openFile: "Open {name}",
  diagram: "Diagram",
  diagramLater: "The diagram appears when it is complete.",
  diagramFailed: "The diagram cannot be drawn",
  copyCode: "Copy code",
};

export const zh: typeof en = {
  remoteImage: "来自 {host} 的图片",
  openFile: "打开 {name}",
  diagram: "图表",
  diagramLater: "图表完整后会显示在这里。",
  diagramFailed: "图表无法绘制",
  copyCode: "复制代码",
};
