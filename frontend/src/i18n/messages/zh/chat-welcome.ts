import type * as en from "../en/chat-welcome";

export const welcome: typeof en.welcome = {
  title: "今天想完成什么？",
  text: "DeerFlow 会规划任务，在独立沙箱中完成，并交付成品文件。",
  starters: "推荐任务",
  demoTitle: "还没有接入模型",
  demoText: "演示模型按固定脚本运行，但工具、沙箱和文件都是真实的。",
  demoTry: "看看演示",
  demoConnect: "接入模型",
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
