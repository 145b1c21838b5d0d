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

export const error: typeof en.error = {
  title: {
    busy: "模型当前繁忙",
    transient: "模型没有响应",
    network: "无法连接到模型",
    quota: "账户额度已用完",
    auth: "模型服务商未接受密钥",
    model_not_found: "服务商没有这个模型",
    context_length: "对话超出了模型的长度限制",
    content_filter: "服务商拒绝回答",
    empty_answer: "模型没有给出回答",
    timeout: "运行超时",
    recursion: "运行步数过多",
    generic: "运行失败",
  },
  text: {
    busy: "当前请求过多，请稍后重试，或换一个模型。",
    transient: "多次尝试均未成功，请稍后重试，或换一个模型。",
    network: "无法连接到服务商，请检查网络和模型地址。",
    quota: "请到服务商处检查套餐和账单，或换一个模型。",
    auth: "请检查服务器上的密钥，或换一个模型。",
    model_not_found: "请检查配置中的模型名称和地址，或换一个模型。",
    context_length: "请开始新对话，或换一个上下文更大的模型。",
    content_filter: "请换一种说法，或换一个模型。",
    empty_answer: "请重试、换一种说法，或换一个模型。",
    timeout: "已完成的内容会保留，请告诉它接下来怎么做。",
    recursion: "已完成的内容会保留，请告诉它接下来怎么做。",
    generic: "已完成的内容会保留，你可以重试。",
  },
  retry: "重试",
  changeModel: "换个模型重试",
  settings: "模型设置",
  details: "详细信息",
};
