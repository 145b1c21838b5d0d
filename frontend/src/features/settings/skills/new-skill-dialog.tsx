"use client";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useT } from "@/i18n";
import { keys } from "@/lib/keys";
import { Dialog, DialogContent } from "@/ui/dialog";
import { Input } from "@/ui/input";
import { Textarea } from "@/ui/textarea";
import { DialogForm, Field } from "../parts/dialog-form";
import { create } from "./api";

interface NewSkillDialogProps {
  open: boolean;
  onClose: () => void;
  onMade: (name: string) => void;
}

export function NewSkillDialog({ open, onClose, onMade }: NewSkillDialogProps) {
  return (
    <Dialog open={open} onOpenChange={(next) => !next && onClose()}>
      <DialogContent className="sm:max-w-lg">
        <NewSkillForm onMade={onMade} />
      </DialogContent>
    </Dialog>
  );
}

const MAX_NAME = 64;
const MAX_DESCRIPTION = 1024;

function NewSkillForm({ onMade }: Pick<NewSkillDialogProps, "onMade">) {
  const t = useT("skills.making");
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const save = async () => {
    const front = `name: ${name}\ndescription: ${JSON.stringify(description.trim().replace(/\s+/g, " "))}`;
    await create(name, `---\n${front}\n---\n\n# ${name}\n\n${t("template")}\n`);
    await queries.invalidateQueries({ queryKey: keys.skills });
    onMade(name);
  };
  return (
    <DialogForm
      title={t("title")}
      text={t("text")}
      confirm={t("make")}
      ready={name !== "" && description.trim() !== ""}
      onSubmit={save}
    >
      <Field label={t("name")} hint={t("nameHint")}>
        {(given) => (
          <Input
            {...given}
            autoFocus
            required
            autoCapitalize="none"
            spellCheck={false}
            maxLength={MAX_NAME}
            placeholder="weekly-report"
            value={name}
            onChange={(event) => setName(event.target.value.toLowerCase().replace(/[\s_]+/g, "-"))}
          />
        )}
      </Field>
      <Field label={t("description")} hint={t("descriptionHint")}>
        {(given) => (
          <Textarea
            {...given}
            required
            maxLength={MAX_DESCRIPTION}
            placeholder={t("descriptionPlaceholder")}
            value={description}
            onChange={(event) => setDescription(event.target.value)}
          />
        )}
      </Field>
    </DialogForm>
  );
}
