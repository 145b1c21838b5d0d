"use client";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useAccount } from "@/features/auth";
import { useT } from "@/i18n";
import { MAX_SOUL } from "../agents/agent-view";
import { agentKeys, profile, writeProfile } from "../agents/api";
import { SavedText } from "../parts/saved-text";
import { Waiting } from "../parts";

/** USER.md: what all agents know about the person, and how they are to work. */
export default function InstructionsSection() {
  const t = useT("instructions");
  const queries = useQueryClient();
  const { data: account } = useAccount();
  const { data, error, refetch } = useQuery({ queryKey: agentKeys.profile, queryFn: profile });
  return (
    <>
      {account?.email && (
        <p className="flex items-center gap-3">
          <span
            aria-hidden
            className="flex size-10 shrink-0 items-center justify-center rounded-full bg-primary-soft font-semibold text-primary uppercase"
          >
            {account.email.charAt(0)}
          </span>
          <span className="min-w-0 truncate text-sm font-medium">{account.email}</span>
        </p>
      )}
      {data === undefined ? (
        <Waiting error={error} retry={() => void refetch()} rows={1} />
      ) : (
        <SavedText
          filename="USER.md"
          owner="you"
          saved={data}
          placeholder={t("placeholder")}
          limit={MAX_SOUL}
          onSave={async (text) => {
            await writeProfile(text);
            queries.setQueryData(agentKeys.profile, text);
          }}
        />
      )}
    </>
  );
}
