/** Texts of `chat` before the first message. */
export const welcome = {
  title: "What would you like to get done?",
  text: "DeerFlow plans, works in its own sandbox, and hands you finished files.",
  starters: "Suggestions",
  demoTitle: "Connect a model to get started",
  demoText: "Until then, a demo model follows a script. Its tools, sandbox and files are real.",
  demoTry: "Watch the demo",
  demoConnect: "Connect a model",
  demoPrompt: "Look around the sandbox and write a short report.",
  demoKey:
    "Set an API key such as <code>OPENAI_API_KEY</code>, <code>ANTHROPIC_API_KEY</code> or <code>DEEPSEEK_API_KEY</code>, in the environment or in <code>.env</code>, and start DeerFlow again.",
  demoLocal: "Or run Ollama, vLLM or LM Studio on this machine. DeerFlow finds it automatically.",
  demoHow: "Two ways to connect a model:",
  task: {
    data: "Analyze data",
    dataText: "Key figures and a chart",
    dataPrompt:
      "Make up a small, plausible sales data set as CSV (12 months, 3 regions). Analyze it, draw a chart, and write a one-page report with the key findings.",
    page: "Build a web page",
    pageText: "One file, ready to open",
    pagePrompt:
      "Build a beautiful single-file HTML page: a pomodoro timer with start, pause and reset, that also works well on a phone.",
    tool: "Write a program",
    toolText: "With tests that pass",
    toolPrompt:
      "Write a Python command-line program that finds duplicate files in a directory. Add tests, run them, and show me that they pass.",
    deck: "Draft a document",
    deckText: "Clear and to the point",
    deckPrompt:
      "Write a two-page project proposal in Markdown for a shared tool library in a neighborhood: goals, plan, budget table, risks. Save it as a file.",
    diagram: "Explain with a diagram",
    diagramText: "With pictures and examples",
    diagramPrompt:
      "Explain how HTTPS works to someone who knows a little programming. Use a mermaid sequence diagram and a short example.",
    files: "Work on my files",
    filesText: "Attach them and ask",
    filesPrompt:
      "I’ve attached some files. Look through each one, summarize them in a table, and suggest what we could do with them.",
  },
};
