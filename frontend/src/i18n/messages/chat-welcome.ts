/** Texts of `chat` before the first message. */
export const welcome = {
  title: "What shall we get done?",
  text: "Files, a shell and a sandbox of its own: DeerFlow plans the work, does it and hands you the result.",
  starters: "Suggestions",
  demoTitle: "No AI model is connected yet",
  demoText: "The demo model follows a fixed script. Its tools, its sandbox and its files are real.",
  demoTry: "Show me the demo",
  demoPrompt: "Look around the sandbox and write a short report.",
  demoKey:
    "Set a provider’s key, e.g. <code>OPENAI_API_KEY</code>, <code>ANTHROPIC_API_KEY</code> or <code>DEEPSEEK_API_KEY</code>, in the environment or in <code>.env</code>, and start DeerFlow again.",
  demoLocal: "Or run Ollama, vLLM or LM Studio on this machine. DeerFlow finds it without any configuration.",
  demoHow: "Connect a real model in one of two ways:",
  task: {
    data: "Analyse data",
    dataText: "Key figures and a chart",
    dataPrompt:
      "Make up a small, plausible sales data set as CSV (12 months, 3 regions). Analyse it, draw a chart, and hand me a one-page report with the most important findings.",
    page: "Build a web page",
    pageText: "One file, ready to open",
    pagePrompt:
      "Build a beautiful single-file HTML page: a pomodoro timer with start, pause and reset, that also works well on a phone.",
    tool: "Write a program",
    toolText: "With tests that pass",
    toolPrompt:
      "Write a Python command-line program that finds duplicate files in a directory. Add tests, run them, and show me that they pass.",
    deck: "Draft a document",
    deckText: "Structured and to the point",
    deckPrompt:
      "Write a two-page project proposal in Markdown for a shared tool library in a neighbourhood: goals, plan, budget table, risks. Save it as a file.",
    diagram: "Explain with a diagram",
    diagramText: "Text, picture and example",
    diagramPrompt:
      "Explain how HTTPS works to someone who can program a little. Use a mermaid sequence diagram and a short example.",
    files: "Work on my files",
    filesText: "Attach, then ask",
    filesPrompt:
      "I have attached files. Look at each of them, tell me in a table what it contains, and suggest what could be done with them.",
  },
};

export const zhWelcome: typeof welcome = {
  title: "今天想完成什么？",
  text: "DeerFlow 自带文件、命令行和独立沙箱：它会规划、动手，并把成果交给你。",
  starters: "推荐任务",
  demoTitle: "还没有连接 AI 模型",
  demoText: "演示模型按固定脚本运行，但工具、沙箱和文件都是真实的。",
  demoTry: "看看演示",
  demoPrompt: "看看沙箱里有什么，写一份简短的报告。",
  demoKey:
    "在环境变量或 <code>.env</code> 中设置服务商的密钥，例如 <code>OPENAI_API_KEY</code>、<code>ANTHROPIC_API_KEY</code> 或 <code>DEEPSEEK_API_KEY</code>，然后重新启动 DeerFlow。",
  demoLocal: "或者在本机运行 Ollama、vLLM 或 LM Studio，DeerFlow 会自动发现，无需配置。",
  demoHow: "连接真实模型有两种方式：",
  task: {
    data: "分析数据",
    dataText: "关键指标和图表",
    dataPrompt:
      "编一份合理的小型销售数据（CSV，12 个月、3 个地区），分析它，画一张图，并给我一页报告，写出最重要的发现。",
    page: "制作网页",
    pageText: "单个文件，打开即用",
    pagePrompt: "做一个漂亮的单文件 HTML 页面：番茄钟，可以开始、暂停和重置，在手机上也好用。",
    tool: "编写程序",
    toolText: "附带通过的测试",
    toolPrompt: "用 Python 写一个查找目录中重复文件的命令行程序，加上测试并运行，让我看到测试通过。",
    deck: "起草文档",
    deckText: "结构清晰，重点突出",
    deckPrompt:
      "用 Markdown 写一份两页的项目建议书：社区共享工具库，包含目标、计划、预算表和风险，并保存为文件。",
    diagram: "用图讲解",
    diagramText: "文字、图示和例子",
    diagramPrompt: "向略懂编程的人解释 HTTPS 的工作原理，用 mermaid 时序图和一个简短的例子。",
    files: "处理我的文件",
    filesText: "先添加附件，再说需求",
    filesPrompt: "我上传了一些文件。请逐个查看，用表格说明各自的内容，并建议可以用它们做些什么。",
  },
};
