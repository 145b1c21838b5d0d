import type { web as english } from "./en";

export const web: typeof english = {
  sources: "{n} 个来源",
  source: "来源 {n}",
  openAsRead: "查看存档",
  visit: "访问网站",
  readOn: "阅读于 {date}",
  notRead: "智能体没有打开过此页面，或没有保留副本。",
  isFile: "此来源是一个文件。打开即可查看智能体读到的内容。",
  gone: "此页面的副本已不存在。",
  picture: "来自 {host} 的图片",
  showPicture: "显示图片",
  showPictureOf: "显示图片：{title}",
  pictureHint: "只有在你要求时，才会从其他网站加载图片。",
  pictureFailed: "无法加载此图片",
  openPicture: "打开图片：{title}",
};
