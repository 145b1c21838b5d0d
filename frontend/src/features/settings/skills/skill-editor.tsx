"use client";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { FormError, useSubmission } from "@/features/auth";
import { useT } from "@/i18n";
import { keys } from "@/lib/keys";
import { Button } from "@/ui/button";
import { toast } from "@/ui/toast";
import { useTextDraft } from "@/lib/text-draft";
import { TextEditor } from "../parts/text-editor";
import { write as store, type SkillText } from "./api";
import { bodyOf } from "./skill-files";

/** Writes SKILL.md of a skill of one's own. */
export function SkillEditor({ skill, onDone }: { skill: SkillText; onDone: () => void }) {
  const t = useT("skills");
  const common = useT("common");
  const queries = useQueryClient();
  const form = useSubmission();
  const [saved] = useState(skill.content);
  const [text, write, forget] = useTextDraft(`skills/${skill.name}`, saved);
  const save = async () => {
    await store(skill.name, text);
    forget();
    await queries.invalidateQueries({ queryKey: keys.skills });
    toast.success(t("saved"));
    onDone();
  };
  return (
    <div className="flex flex-col gap-3">
      <TextEditor filename="SKILL.md" value={text} onChange={write} saved={saved} shown={bodyOf} />
      <FormError message={form.message} />
      <div className="flex flex-wrap justify-end gap-2">
        <Button
          variant="outline"
          size="sm"
          onClick={() => {
            forget();
            onDone();
          }}
        >
          {common("cancel")}
        </Button>
        <Button
          size="sm"
          pending={form.pending}
          disabled={text === saved}
          onClick={() => void form.submit(save)}
        >
          {common("save")}
        </Button>
      </div>
    </div>
  );
}
