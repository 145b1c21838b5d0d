import next from "eslint-config-next/core-web-vitals";
import typescript from "eslint-config-next/typescript";

const features = [
  "artifacts",
  "auth",
  "chat",
  "composer",
  "decisions",
  "live",
  "markdown",
  "notifications",
  "palette",
  "runs",
  "settings",
  "tasks",
  "threads",
  "workspace",
];
const inside = (names) => ({
  group: names.map((name) => `@/features/${name}/*`),
  message: "Import a feature through its index.ts.",
});
const above = (...floors) => ({
  group: floors.map((floor) => `@/${floor}/**`),
  message: "app → features → ui, lib, i18n; never upwards.",
});
const fragile = {
  group: ["react"],
  importNames: ["lazy"],
  message:
    "`late` of @/lib/late waits for its part when there is no network; `lazy` fails with the whole page.",
};
const forbid = (...patterns) => ({
  "no-restricted-imports": ["error", { patterns: [...patterns, fragile] }],
});

const config = [
  ...next,
  ...typescript,
  { ignores: [".next/**", "build/**", "out/**", "next-env.d.ts", "src/lib/api-types.ts"] },
  {
    rules: {
      "@next/next/no-img-element": "off", // the export has no image optimiser
      "max-lines": ["error", { max: 300, skipBlankLines: true, skipComments: true }],
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
    },
  },
  { files: ["e2e/**"], rules: { "react-hooks/rules-of-hooks": "off" } }, // Playwright's `use` is no hook
  { files: ["src/app/**"], rules: forbid(inside(features)) },
  { files: ["src/ui/**", "src/lib/**", "src/i18n/**"], rules: forbid(above("features", "app")) },
  { files: ["src/lib/**"], rules: forbid(above("features", "app", "ui")) },
  ...features.map((name) => ({
    files: [`src/features/${name}/**`],
    rules: forbid(above("app"), inside(features.filter((other) => other !== name))),
  })),
  { files: ["src/lib/late.ts"], rules: { "no-restricted-imports": "off" } },
];
export default config;
