"use client";
import { useId, useState } from "react";
import { useT } from "@/i18n";
import { Button } from "@/ui/button";
import type { Connection } from "./api";
import { ConnectForm } from "./connect-form";
import { Place } from "./connections";
import { Group, Panel, Row } from "../parts";

interface WebSearchProps {
  /** null: config.yaml lists the tools. */
  connections: Connection[] | null;
}

/** The agent's web search, and the form by which an administrator changes it. */
export function WebSearch({ connections }: WebSearchProps) {
  const t = useT("models.webSearch");
  const form = useId();
  const [open, setOpen] = useState(false);
  const current = connections?.find((one) => one.in_use);
  return (
    <Group title={t("title")}>
      <Panel>
        {current ? (
          <Row
            inline
            label={
              <span className="flex flex-wrap items-center gap-x-2 gap-y-1">
                {current.title}
                <Place of={current} />
              </span>
            }
            hint={hintOf(current, t)}
          >
            <Button
              variant="outline"
              size="sm"
              aria-expanded={open}
              aria-controls={open ? form : undefined}
              onClick={() => setOpen(!open)}
            >
              {t("change")}
            </Button>
          </Row>
        ) : (
          <Row label={t("inFile")} hint={t("inFileText")} />
        )}
        {open && connections && (
          <div id={form} className="p-4 sm:p-5">
            <ConnectForm connections={connections} />
          </div>
        )}
      </Panel>
    </Group>
  );
}

function hintOf(current: Connection, t: ReturnType<typeof useT<"models.webSearch">>) {
  if (current.base_url) return current.base_url;
  if (current.needs === "nothing") return t("free");
  return current.place ? current.variable : t("missing", { variable: current.variable });
}
