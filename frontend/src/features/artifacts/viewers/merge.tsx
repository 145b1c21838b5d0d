"use client";
import { MergeView, unifiedMergeView } from "@codemirror/merge";
import { EditorState, EditorView, lineNumbers, type Extension } from "@uiw/react-codemirror";
import { useEffect, useRef } from "react";
import { useGrammar } from "./code-mirror";
import { editorTheme } from "./editor-theme";

interface MergeProps {
  before: string;
  after: string;
  filename: string;
  layout: "unified" | "split";
  label: string;
}

/** Two texts of any size compared, with highlighting. */
export default function Merge({ before, after, filename, layout, label }: MergeProps) {
  const place = useRef<HTMLDivElement>(null);
  const grammar = useGrammar(filename);
  useEffect(() => {
    const parent = place.current;
    if (!parent) return;
    const shared: Extension[] = [
      editorTheme,
      grammar,
      lineNumbers(),
      EditorState.readOnly.of(true),
      EditorView.editable.of(false),
      EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
    ];
    const collapseUnchanged = { margin: 3, minSize: 6 };
    if (layout === "split") {
      const view = new MergeView({
        a: { doc: before, extensions: [...shared, EditorView.lineWrapping] },
        b: { doc: after, extensions: [...shared, EditorView.lineWrapping] },
        collapseUnchanged,
        parent,
      });
      return () => view.destroy();
    }
    const unified = unifiedMergeView({ original: before, mergeControls: false, collapseUnchanged });
    const view = new EditorView({
      doc: after,
      extensions: [...shared, EditorView.lineWrapping, unified],
      parent,
    });
    return () => view.destroy();
  }, [before, after, layout, grammar, label]);
  return <div ref={place} className="size-full overflow-auto [&>.cm-editor]:h-full" />;
}
