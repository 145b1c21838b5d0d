import type * as en from "../en/artifacts-viewers";

export const viewers: typeof en.viewers = {
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
