"use client";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useT } from "@/i18n";
import { Group, Waiting } from "../parts";
import { MAX_SOUL } from "./agent-view";
import { agentKeys, profile, writeProfile } from "./api";
import { SavedText } from "./saved-text";

/** USER.md: what all agents know about the person. */
export function Profile() {
  const t = useT("agents");
  const queries = useQueryClient();
  const { data, error, refetch } = useQuery({ queryKey: agentKeys.profile, queryFn: profile });
  return (
    <Group title={t("you")}>
      <p className="text-[13px] leading-relaxed text-muted-foreground">{t("youText")}</p>
      {data === undefined ? (
        <Waiting error={error} retry={() => void refetch()} rows={1} />
      ) : (
        <SavedText
          filename="USER.md"
          saved={data}
          placeholder={t("youPlaceholder")}
          limit={MAX_SOUL}
          onSave={async (text) => {
            await writeProfile(text);
            queries.setQueryData(agentKeys.profile, text);
          }}
        />
      )}
    </Group>
  );
}
