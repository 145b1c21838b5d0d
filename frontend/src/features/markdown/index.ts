export { Markdown, preloadMarkdown, RemotePicture } from "./markdown";
export { MarkdownPlace } from "./place";
