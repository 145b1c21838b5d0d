import type { notifications as english } from "./en";

export const notifications: typeof english = {
  enabled: "开启通知",
  enabledText: "当你离开页面时，任务完成、失败或需要你处理时提醒你。",
  denied: "浏览器已阻止此页面的通知。",
  deniedText: "请在浏览器的网站设置（地址栏左侧的图标）中允许通知，然后回到这里。",
  unsupported: "此浏览器无法显示此页面的通知。",
  insecure: "浏览器仅允许 https 页面或 localhost 显示通知。",
  test: "发送测试通知",
  testText: "立即显示一条通知。",
  testTitle: "DeerFlow",
  testBody: "任务完成时，通知就是这个样子。",
  sent: "已发送。如果没有看到，系统可能开启了“勿扰模式”。",
};
