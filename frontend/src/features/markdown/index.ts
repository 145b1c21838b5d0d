export { Markdown, preloadMarkdown } from "./markdown";
export { MarkdownPlace } from "./place";
export { RemotePicture, webTexts } from "./web";
