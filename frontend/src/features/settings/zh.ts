import type { settings as english } from "./en";

export const settings: typeof english = {
  title: "设置",
  backToChat: "返回对话",
  allSettings: "全部设置",
  nav: "设置分类",
  group: { personal: "个人", own: "你的智能体", server: "服务器" },
  editor: {
    view: "{name} 的视图",
    write: "编写",
    preview: "预览",
    changes: "更改",
    empty: "还没有内容。",
    length: "{n, number} / {limit, number} 个字符",
    saved: "已保存，从下一条消息起生效。",
  },
  history: {
    byYou: "由你修改",
    byAgent: "由智能体修改",
    chat: "来自对话",
  },
};
