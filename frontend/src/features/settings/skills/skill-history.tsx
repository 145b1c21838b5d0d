"use client";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useT } from "@/i18n";
import { keys } from "@/lib/keys";
import { toast } from "@/ui/toast";
import { History, type Change } from "../parts/history";
import { Waiting } from "../parts";
import { history, rollback, skillKeys, type SkillChange } from "./api";

/** Changes of an own skill, each with a way back to the state before it. */
export function SkillHistory({ name }: { name: string }) {
  const t = useT("skills");
  const queries = useQueryClient();
  const { data, error, refetch } = useQuery({
    queryKey: skillKeys.history(name),
    queryFn: () => history(name),
  });
  if (!data) return <Waiting error={error} retry={() => void refetch()} />;
  const goBack = async (index: number) => {
    await rollback(name, index);
    await queries.invalidateQueries({ queryKey: keys.skills });
    toast.success(t("wentBack"));
  };
  const changes = data.map((change, index): Change => {
    const canGoBack = change.prev_content !== null || change.file_path !== "SKILL.md";
    return {
      id: `${change.ts} ${index}`,
      title: t(`action.${actionOf(change)}`, { file: change.file_path }),
      at: change.ts,
      byAgent: change.action.startsWith("agent_"),
      threadId: change.thread_id,
      filename: change.file_path,
      diff: change.diff,
      act: canGoBack ? { label: t("goBack"), run: () => goBack(index) } : undefined,
    };
  });
  return <History changes={changes.reverse()} />;
}

/** Kind of a change to the file. */
function actionOf({ action, prev_content, new_content }: SkillChange) {
  if (action === "install" || action === "rollback") return action;
  if (new_content === null) return "removed";
  return prev_content === null ? "created" : "changed";
}
