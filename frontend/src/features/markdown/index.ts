export { Markdown, preloadMarkdown } from "./markdown";
export { MarkdownPlace } from "./place";
