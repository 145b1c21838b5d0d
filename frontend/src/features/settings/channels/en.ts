export const channels = {
  bots: "Bots",
  add: "Add channel",
  none: "No channels yet",
  noneText: "Connect a bot, and people can give DeerFlow tasks in Telegram, Slack, Feishu, Discord and more.",
  noneTextUser: "Connect a bot of your own, and give DeerFlow tasks where you chat.",
  state: {
    off: "Off",
    starting: "Connecting…",
    connected: "Connected",
    retrying: "Reconnecting…",
    "signed-out": "Signed out",
    displaced: "Used elsewhere",
    misconfigured: "Needs a setting",
  },
  own: "Only you",
  inFile: "set up in config.yaml",
  withAgent: "answers as {agent}",
  since: "Since {when}",
  waiting: "{n, plural, one {# message waits to be sent} other {# messages wait to be sent}}",
  calls: "Receives at {url}",
  on: "Use {name}",
  actions: "Actions for {name}",
  edit: "Edit",
  test: "Send a test message",
  tested: "Sent to {place}.",
  restart: "Reconnect",
  restarted: "{name} is connecting again.",
  remove: "Delete",
  removeTitle: "Delete “{name}”?",
  removeText: "The bot stops answering. Its token is deleted; chats stay.",
  removed: "{name} was deleted.",
  accounts: "Your accounts",
  accountsText: "A bot only works for people whose account is connected. You act there with your own rights.",
  connect: "Connect",
  connectTo: "Connect your account on {kind}",
  unlink: "Disconnect",
  unlinkOf: "Disconnect {name}",
  unlinked: "{name} is disconnected.",
  codeTitle: "Connect your account",
  codeText: "Send this to the bot in a private chat. It works once, for {minutes} minutes.",
  codeOpen: "Open the chat",
  addTitle: "Add a channel",
  addText: "DeerFlow connects to the platform from here; no public address is needed unless a step says so.",
  addShort: "Add",
  editTitle: "Edit {name}",
  save: "Save",
  saved: "{name} was saved.",
  added: "{name} is connecting.",
  platform: "Platform",
  optional: "{label} (optional)",
  kept: "Leave empty to keep the one that is stored.",
  agent: "Agent",
  agentNone: "Default",
  model: "Model",
  modelNone: "Default",
  ownLabel: "Only for me",
  ownHint:
    "The bot then answers you alone. Otherwise everyone on this server can connect their account to it.",
  console: "Open the platform’s console",
  asOf: "As of November 2026",
  steps: {
    telegram:
      "In Telegram, open @BotFather and send /newbot.\nChoose a name and a username that ends in “bot”.\nCopy the token that BotFather sends.\nFor groups, send /setprivacy and choose Disable, or mention the bot each time.",
    slack:
      "Create an app “From scratch” and switch on Socket Mode; copy the app-level token (xapp-…) with connections:write.\nUnder OAuth & Permissions, add the bot scopes app_mentions:read, channels:history, chat:write, files:read, files:write, groups:history, im:history, im:write, reactions:write and users:read.\nUnder Event Subscriptions, subscribe to app_mention, message.channels, message.groups and message.im; switch on Interactivity.\nInstall the app in your workspace and copy the bot token (xoxb-…).",
    feishu:
      "Create a custom app and add the Bot capability; copy App ID and App Secret.\nUnder Permissions, add im:message, im:message:send_as_bot, im:resource and im:message.reactions:write_only.\nUnder Events & Callbacks, choose the long connection and add im.message.receive_v1 and card.action.trigger.\nPublish a version and let an administrator approve it.",
    discord:
      "Create an application, open Bot, and copy the token.\nSwitch on Message Content Intent.\nUnder OAuth2, choose the scope bot with Send Messages, Create Public Threads, Send Messages in Threads, Read Message History, Attach Files and Add Reactions.\nOpen the address that is shown and add the bot to your server.",
    email:
      "Use a mailbox of its own, with IMAP and SMTP.\nEnter its address and an app password.\nName the server that stands in Authentication-Results: only mails that passed DMARC there count.",
    webhook:
      "Choose a secret; both sides sign with it (Standard Webhooks).\nEnter the address that answers are sent to.\nThe address for your messages is shown when the channel is added.",
    github:
      "In the repository or organisation, add a webhook with this server’s address /api/webhooks/github, content type application/json and a secret.\nChoose the events Issue comments, Issues, Pull requests and Pull request reviews.\nEnter the secret, a token that may write comments, and the name that people mention.",
    dingtalk:
      "Create an internal app and add the Robot capability in Stream mode.\nCopy Client ID and Client Secret.\nFor answers that grow while you watch, create an AI card template and copy its ID.\nPublish the app.",
    wecom:
      "In the admin console, create an intelligent bot in API mode with a long connection.\nCopy Bot ID and Secret.\nUse it in one program only: a second one takes the connection over.",
    wechat:
      "Show the QR code and scan it with WeChat on your phone.\nConfirm on the phone.\nOnly the account that scans it can write to the bot.",
  },
  qr: {
    show: "Show QR code",
    signInAgain: "Sign in again with a QR code",
    picture: "QR code for WeChat",
    waiting: "Scan this code with WeChat on your phone.",
    scanned: "Scanned. Confirm on your phone.",
    needs_code: "Your phone shows a number. Enter it here.",
    number: "Number",
    confirmed: "Signed in.",
    expired: "This code has expired.",
    canceled: "The sign-in was canceled on the phone.",
    again: "New code",
  },
};

declare module "@/i18n" {
  interface Messages {
    channels: typeof channels;
  }
}
