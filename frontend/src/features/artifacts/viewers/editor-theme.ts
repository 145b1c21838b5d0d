import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { tags } from "@lezer/highlight";
import { EditorView, type Extension } from "@uiw/react-codemirror";

/** CodeMirror in our colours: variables, so that light and dark need nothing else. */
const look = EditorView.theme({
  "&": {
    backgroundColor: "transparent",
    color: "var(--code-foreground)",
    fontSize: "0.8125rem",
    height: "100%",
  },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--font-mono)", lineHeight: "1.6", overflow: "auto" },
  ".cm-content": { padding: "0.75rem 0", caretColor: "var(--foreground)" },
  ".cm-content:focus-visible": { outline: "none" },
  ".cm-line": { padding: "0 1rem 0 0.5rem" },
  ".cm-gutters": { backgroundColor: "var(--background)", color: "var(--muted-foreground)", border: "none" },
  ".cm-lineNumbers .cm-gutterElement": { padding: "0 0.5rem 0 0.75rem", minWidth: "2.5rem" },
  ".cm-activeLine, .cm-activeLineGutter": {
    backgroundColor: "color-mix(in oklch, var(--muted) 60%, transparent)",
  },
  ".cm-cursor": { borderLeftColor: "var(--foreground)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--selection)",
  },
  ".cm-selectionMatch, .cm-searchMatch": { backgroundColor: "var(--warning-soft)" },
  ".cm-searchMatch-selected": { backgroundColor: "var(--selection)" },
  ".cm-matchingBracket": { backgroundColor: "var(--accent)", outline: "1px solid var(--border)" },
  ".cm-foldPlaceholder": {
    backgroundColor: "var(--muted)",
    border: "none",
    color: "var(--muted-foreground)",
  },
  ".cm-panels": { backgroundColor: "var(--muted)", color: "var(--foreground)", borderColor: "var(--border)" },
  ".cm-panel input, .cm-panel button": {
    fontFamily: "var(--font-sans)",
    backgroundColor: "var(--background)",
    backgroundImage: "none",
    color: "var(--foreground)",
    border: "1px solid var(--input)",
    borderRadius: "0.375rem",
  },
  ".cm-tooltip": {
    backgroundColor: "var(--popover)",
    color: "var(--popover-foreground)",
    borderColor: "var(--border)",
  },
  ".cm-mergeView, .cm-mergeViewEditors": { height: "100%" },
  ".cm-changedLine": { backgroundColor: "var(--success-soft) !important" },
  ".cm-deletedChunk": { backgroundColor: "var(--destructive-soft)", paddingLeft: "0.5rem" },
  "&.cm-merge-a .cm-changedLine": { backgroundColor: "var(--destructive-soft) !important" },
  "&.cm-merge-a .cm-changedText, .cm-deletedChunk .cm-deletedText": {
    background: "color-mix(in oklch, var(--destructive) 16%, transparent)",
  },
  "&.cm-merge-b .cm-changedText, .cm-changedText": {
    background: "color-mix(in oklch, var(--success) 16%, transparent)",
  },
  ".cm-collapsedLines:before, .cm-collapsedLines:after": { content: "none" },
  ".cm-collapsedLines": {
    background: "var(--muted)",
    color: "var(--muted-foreground)",
    fontFamily: "var(--font-sans)",
    padding: "0.125rem 1rem",
  },
});

const colours = HighlightStyle.define([
  { tag: [tags.comment, tags.meta], color: "var(--muted-foreground)", fontStyle: "italic" },
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier, tags.tagName], color: "var(--primary)" },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: "var(--success)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom, tags.escape], color: "var(--warning)" },
  { tag: [tags.typeName, tags.className, tags.namespace], color: "var(--warning)" },
  {
    tag: [tags.attributeName, tags.propertyName],
    color: "color-mix(in oklch, var(--primary) 55%, var(--foreground))",
  },
  { tag: [tags.function(tags.variableName), tags.function(tags.propertyName)], fontWeight: "500" },
  { tag: tags.heading, fontWeight: "650" },
  { tag: tags.strong, fontWeight: "650" },
  { tag: tags.emphasis, fontStyle: "italic" },
  { tag: tags.strikethrough, textDecoration: "line-through" },
  { tag: [tags.link, tags.url], color: "var(--primary)", textDecoration: "underline" },
  { tag: tags.invalid, color: "var(--destructive)" },
]);

export const editorTheme: Extension = [look, syntaxHighlighting(colours)];
