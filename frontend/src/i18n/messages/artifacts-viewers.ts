/** The part of `artifacts` that viewers say. */

export const en = {
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

export const zh: typeof en = {
  site: {
    title: "{name} 的预览",
    reload: "重新加载",
    network: "联网",
    networkOff: "此页面无法访问互联网：不能向外发送内容，也不会加载外部资源。",
    networkOn: "此页面可以从其他服务器加载资源，因此可能向它们透露页面内容。",
    allow: "允许访问互联网",
    expired: "无法打开预览",
  },
  image: { zoom: "大小", fit: "适应", full: "100%", alt: "图片 {name}", failed: "无法显示图片" },
  pdf: {
    title: "文档 {name}",
    none: "浏览器无法在此显示 PDF",
    noneText: "请在新标签页中打开，或下载后查看。",
    open: "在新标签页中打开",
  },
  table: {
    label: "表格 {name}",
    row: "行",
    rows: "{n, plural, other {# 行}}",
    columns: "{n, plural, other {# 列}}",
    sortBy: "按 {name} 排序",
    column: "第 {n} 列",
    none: "没有数据行",
  },
  notebook: { label: "笔记本 {name}", error: "错误", output: "输出", picture: "单元格生成的图片" },
  media: { audio: "音频 {name}", video: "视频 {name}", failed: "浏览器无法播放此文件。" },
  unknown: {
    office: "不支持预览办公文档",
    archive: "不支持预览压缩包",
    binary: "不支持预览此类文件",
    text: "下载后可在你的设备上打开。",
    type: "类型",
    size: "大小",
    modified: "修改时间",
    path: "路径",
  },
};
