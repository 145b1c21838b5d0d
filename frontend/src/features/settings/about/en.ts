export const about = {
  licenceText: "MIT license: free to use, change and share.",
  help: "Help",
  changes: "What’s new",
  back: "About",
  apiDocs: "API reference",
  environment: "Environment",
  python: "Python",
  platform: "Platform",
  database: "Database",
  authentication: "Sign-in",
  accounts: "With accounts",
  open: "None",
  registration: "Registration",
  registrationOpen: "Open to everyone",
  registrationClosed: "By invitation",
  dataDir: "Data directory",
  configFile: "Configuration",
  noConfigFile: "None: defaults, with models found automatically",
  configProblem: "The latest configuration is invalid. The last valid one is in use.",
  copy: "Copy for a bug report",
  database_kind: { sqlite: "SQLite", postgres: "PostgreSQL", memory: "In memory: lost on restart" },
};

declare module "@/i18n" {
  interface Messages {
    about: typeof about;
  }
}
