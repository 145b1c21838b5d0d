import type * as en from "../en/chat-decisions";

export const clarification: typeof en.clarification = {
  title: "DeerFlow 想确认",
  options: "可选的回答",
  own: "用自己的话回答",
  kind: {
    missing_info: "还缺少一些信息",
    ambiguous_requirement: "这个需求有几种理解",
    approach_choice: "请选择做法",
    risk_confirmation: "请确认",
    suggestion: "一个建议",
  },
};
