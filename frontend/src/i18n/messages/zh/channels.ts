import type { channels as english } from "../en/channels";

export const channels: typeof english = {
  bots: "机器人",
  add: "添加渠道",
  none: "还没有渠道",
  noneText: "接入一个机器人，大家就能在 Telegram、Slack、飞书、Discord 等平台里给 DeerFlow 派任务。",
  noneTextUser: "接入你自己的机器人，在聊天里就能给 DeerFlow 派任务。",
  state: {
    off: "已关闭",
    starting: "连接中…",
    connected: "已连接",
    retrying: "正在重连…",
    "signed-out": "登录已失效",
    displaced: "被其他程序占用",
    misconfigured: "缺少设置",
  },
  own: "仅限你自己",
  inFile: "在 config.yaml 中配置",
  withAgent: "以 {agent} 的身份回答",
  since: "始于{when}",
  waiting: "{n, plural, other {有 # 条消息待发送}}",
  on: "使用 {name}",
  actions: "{name} 的操作",
  edit: "编辑",
  test: "发送测试消息",
  tested: "已发送到 {place}。",
  restart: "重新连接",
  restarted: "{name} 正在重新连接。",
  remove: "删除",
  removeTitle: "删除“{name}”？",
  removeText: "机器人将不再回答，它的令牌会被删除；对话会保留。",
  removed: "已删除 {name}。",
  accounts: "你的账号",
  accountsText: "机器人只为已绑定账号的人工作。你在那里拥有的权限与这里相同。",
  connect: "绑定",
  connectTo: "绑定你在 {kind} 上的账号",
  unlink: "解除绑定",
  unlinkOf: "解除绑定 {name}",
  unlinked: "已解除绑定 {name}。",
  codeTitle: "绑定你的账号",
  codeText: "在私聊中把这段文字发给机器人。只能使用一次，{minutes} 分钟内有效。",
  codeOpen: "打开聊天",
  addTitle: "添加渠道",
  addText: "由 DeerFlow 主动连接平台；除非步骤中另有说明，不需要公网地址。",
  addShort: "添加",
  editTitle: "编辑 {name}",
  save: "保存",
  saved: "已保存 {name}。",
  added: "{name} 正在连接。",
  platform: "平台",
  optional: "{label}（可选）",
  kept: "留空则保留已存储的内容。",
  agent: "智能体",
  agentNone: "默认",
  model: "模型",
  modelNone: "默认",
  ownLabel: "仅供我使用",
  ownHint: "机器人只回答你一个人。否则，本服务器上的所有人都可以绑定自己的账号。",
  console: "打开平台的控制台",
  asOf: "截至 2026 年 11 月",
  steps: {
    telegram:
      "在 Telegram 中打开 @BotFather，发送 /newbot。\n取一个名称，以及一个以“bot”结尾的用户名。\n复制 BotFather 发来的令牌。\n用于群组时，发送 /setprivacy 并选择 Disable，或者每次都 @ 机器人。",
    slack:
      "选择“From scratch”创建应用，打开 Socket Mode，复制带 connections:write 权限的应用级令牌（xapp-…）。\n在 OAuth & Permissions 中添加机器人权限：app_mentions:read、channels:history、chat:write、files:read、files:write、groups:history、im:history、im:write、reactions:write、users:read。\n在 Event Subscriptions 中订阅 app_mention、message.channels、message.groups、message.im，并打开 Interactivity。\n把应用安装到工作区，复制机器人令牌（xoxb-…）。",
    feishu:
      "创建企业自建应用并添加机器人能力，复制 App ID 和 App Secret。\n在权限管理中开通 im:message、im:message:send_as_bot、im:resource、im:message.reactions:write_only。\n在事件与回调中选择长连接，添加 im.message.receive_v1 和 card.action.trigger。\n发布版本，并由管理员审核通过。",
    discord:
      "创建应用，打开 Bot 页面，复制令牌。\n打开 Message Content Intent。\n在 OAuth2 中选择 bot，并勾选发送消息、创建公开子区、在子区中发送消息、读取消息历史、附加文件、添加反应。\n打开显示的地址，把机器人加入你的服务器。",
    email:
      "准备一个专用邮箱，支持 IMAP 和 SMTP。\n填写邮箱地址和应用专用密码。\n填写 Authentication-Results 中的服务器名：只有在那里通过 DMARC 的邮件才有效。",
    webhook:
      "设定一个密钥，双方都用它签名（Standard Webhooks）。\n填写接收回答的地址。\n添加渠道后会显示用来接收你的消息的地址。",
    github:
      "在仓库或组织中添加 webhook：地址为本服务器的 /api/webhooks/github，内容类型为 application/json，并设定密钥。\n选择事件：Issue comments、Issues、Pull requests、Pull request reviews。\n填写密钥、可以发表评论的令牌，以及大家要 @ 的名字。",
    dingtalk:
      "创建企业内部应用，添加 Stream 模式的机器人。\n复制 Client ID 和 Client Secret。\n如需边写边显示的回答，创建 AI 卡片模板并复制其 ID。\n发布应用。",
    wecom:
      "在管理后台创建 API 模式、长连接方式的智能机器人。\n复制 Bot ID 和 Secret。\n只能在一个程序中使用：另一个程序会抢占连接。",
    wechat:
      "用微信登录 iLink，方法见本渠道的文档。\n填写登录后得到的令牌。\n只有登录的账号可以给机器人发消息。",
  },
};
