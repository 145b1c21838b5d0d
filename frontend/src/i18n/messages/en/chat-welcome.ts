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
