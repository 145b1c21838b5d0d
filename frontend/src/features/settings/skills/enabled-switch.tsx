"use client";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useT } from "@/i18n";
import { keys } from "@/lib/keys";
import type { Skill } from "@/lib/skills";
import { Switch } from "@/ui/switch";
import { toast } from "@/ui/toast";
import { setEnabled } from "./api";

/** Switch that lets a person's agents use a skill; shows the new state during the request. */
export function EnabledSwitch({ skill, id }: { skill: Skill; id?: string }) {
  const t = useT("skills");
  const change = useSwitchSkill();
  const [wanted, setWanted] = useState<boolean | null>(null);
  const set = async (enabled: boolean) => {
    setWanted(enabled);
    await change(skill.name, enabled);
    setWanted(null);
  };
  return (
    <Switch
      id={id}
      aria-label={id ? undefined : t("use", { name: skill.name })}
      checked={wanted ?? skill.enabled}
      disabled={wanted !== null}
      onCheckedChange={(enabled) => void set(enabled)}
    />
  );
}

/** Switches a skill on or off; true: that is done. */
export function useSwitchSkill() {
  const queries = useQueryClient();
  return async (name: string, enabled: boolean) => {
    try {
      await setEnabled(name, enabled);
    } catch (problem) {
      toast.error((problem as Error).message);
      return false;
    }
    await queries.invalidateQueries({ queryKey: keys.skills });
    return true;
  };
}
