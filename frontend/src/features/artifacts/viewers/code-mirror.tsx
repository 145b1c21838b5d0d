"use client";
import { LanguageDescription } from "@codemirror/language";
import { languages } from "@codemirror/language-data";
import { useQuery } from "@tanstack/react-query";
import CodeMirror, { EditorState, EditorView, keymap, Prec, type Extension } from "@uiw/react-codemirror";
import { editorTheme } from "./editor-theme";

/** Highlighting is not worth waiting for in what is larger. */
const HIGHLIGHTED = 2 << 20;

/** The grammar for a file of this name, loaded when needed; empty until then. */
export function useGrammar(filename: string, enabled = true): Extension {
  const found = LanguageDescription.matchFilename(languages, filename);
  const { data } = useQuery({
    queryKey: ["grammar", found?.name ?? ""],
    queryFn: () => found!.load(),
    enabled: enabled && found !== null,
    staleTime: Infinity,
    structuralSharing: false,
  });
  return data ?? [];
}

interface CodeMirrorEditorProps {
  text: string;
  filename: string;
  label: string;
  wrap?: boolean;
  /** Without it the text is only to be read. */
  onChange?: (text: string) => void;
  onSave?: () => void;
}

export default function CodeMirrorEditor(props: CodeMirrorEditorProps) {
  const { text, filename, label, wrap = false, onChange, onSave } = props;
  const grammar = useGrammar(filename, text.length < HIGHLIGHTED);
  const readOnly = onChange === undefined;
  const extensions: Extension[] = [
    editorTheme,
    grammar,
    EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0", spellcheck: "false" }),
    wrap ? EditorView.lineWrapping : [],
    readOnly ? [EditorState.readOnly.of(true), EditorView.editable.of(false)] : [],
    onSave
      ? Prec.highest(keymap.of([{ key: "Mod-s", preventDefault: true, run: () => (onSave(), true) }]))
      : [],
  ];
  return (
    <CodeMirror
      value={text}
      onChange={onChange}
      extensions={extensions}
      theme="none"
      autoFocus={!readOnly}
      height="100%"
      className="size-full overflow-hidden bg-background text-left"
      basicSetup={{
        highlightActiveLine: !readOnly,
        highlightActiveLineGutter: !readOnly,
        foldGutter: false,
        autocompletion: false,
        syntaxHighlighting: false,
      }}
    />
  );
}
