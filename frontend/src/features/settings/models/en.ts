export const models = {
  default: "Default",
  problem: "Not usable",
  missing: "{names} isn’t set. Set it in the server’s environment or in .env.",
  origin: {
    file: "From config.yaml",
    connected: "Connected on this page",
    environment: "From the environment variable {name}",
    local: "{name} on this machine, at {address}",
    demo: "Used because no model is connected",
  },
  thinking: "Thinking",
  effort: "Effort",
  vision: "Images",
  window: "{tokens} tokens of context",
  test: "Test",
  testing: "Asking…",
  testAgain: "Test again",
  ok: "Working. Answered in {time}.",
  said: "“{answer}”",
  failed: "No answer.",
  rests: {
    circuit_open: "Paused: it failed several times in a row. A successful test resumes it.",
    busy: "Paused: its provider asked to wait. A successful test resumes it.",
  },
  throttled: "Too many tests. Try again in {seconds, plural, one {# second} other {# seconds}}.",
  none: "No models configured",
  demoTitle: "Only the demo model is available",
  demoText:
    "Its answers are scripted; the sandbox, commands and files are real. Two ways to connect a real model:",
  demoMember:
    "Its answers are scripted; the sandbox, commands and files are real. An administrator can connect a real model.",
  demoConnect:
    "Its answers are scripted; the sandbox, commands and files are real. Choose a provider and paste your key:",
  connect: {
    provider: "Provider",
    other: "Other (OpenAI-compatible)",
    address: "Address",
    addressHint:
      "Base URL, such as localhost:1234. http:// and /v1 are added if needed. Works with Ollama, vLLM and LM Studio.",
    key: "API key",
    keyIfAny: "API key, if it needs one",
    keyKept: "Leave empty to keep the saved key.",
    show: "Show models",
    models: "Models to use",
    search: "Search models",
    nothing: "No model with this name",
    first: "Default",
    model: "Model ID",
    modelHint: "The server doesn’t list its models. Enter the model ID, e.g. llama-4-70b.",
    searchAddressHint: "Your SearXNG address. Its settings need json in search.formats.",
    noKey: "Needs no key. Many searches in a short time may be refused.",
    keyOutside: "Set by the environment variable {variable}.",
    searches: "Web search now uses {provider}.",
    store: "Save the key",
    storeText: {
      encrypted: "In DeerFlow’s data directory, encrypted. It is never shown again.",
      dotenv: "As plain text in the .env file of the folder DeerFlow runs in. Only its owner can read it.",
    },
    place: { encrypted: "Encrypted", dotenv: "In .env", environment: "Environment" },
    test: "Test",
    use: "Connect",
    done: "Connected · {count, plural, one {# model} other {# models}}",
    start: "Start a chat",
    connected: "Connected providers",
    outside: "set by an environment variable; change it there",
    disconnect: "Disconnect",
    disconnectTitle: "Disconnect {provider}?",
    disconnectText: "Its key or address is deleted here, and its models can no longer be used.",
    disconnectSearchText: "Its key or address is deleted here, and it can no longer search the web.",
    gone: "{provider} is disconnected.",
  },
  webSearch: {
    title: "Web search",
    change: "Change",
    free: "Works without a key. A provider with a key is faster and more reliable.",
    missing: "Can’t search yet: {variable} isn’t set.",
    inFile: "Set in config.yaml",
    inFileText: "config.yaml sets the tools, including web search.",
  },
  keyTitle: "Set an API key",
  keyText:
    "Set it in the environment, or in a .env file in the folder you start DeerFlow from. Then restart DeerFlow.",
  keyNames: "Supported names include {names}.",
  fileTitle: "Or add a model to config.yaml",
  fileText:
    "For other providers and custom settings. <command>deerflow config init</command> creates a commented file.",
  localText: "Ollama, vLLM and LM Studio on the same machine are found automatically.",
  moreTitle: "Connect another model",
};

declare module "@/i18n" {
  interface Messages {
    models: typeof models;
  }
}
