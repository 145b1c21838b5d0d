"use client";
import { ChevronDown, FileText, KeyRound, Sparkles } from "lucide-react";
import type { ReactNode } from "react";
import { useT } from "@/i18n";
import { Collapsible, CollapsibleContent, CollapsibleTrigger } from "@/ui/collapsible";
import { CopyButton } from "@/ui/copy-button";
import type { Connection } from "./api";
import { ConnectForm } from "./connect-form";
import { Code } from "../parts";

const KEYS = [
  "OPENAI_API_KEY",
  "ANTHROPIC_API_KEY",
  "DEEPSEEK_API_KEY",
  "GEMINI_API_KEY",
  "OPENROUTER_API_KEY",
  "MISTRAL_API_KEY",
  "GROQ_API_KEY",
  "XAI_API_KEY",
  "MOONSHOT_API_KEY",
  "DASHSCOPE_API_KEY",
];
const ENTRY = `models:
  - name: my-model
    use: langchain_openai:ChatOpenAI
    model: gpt-4.1
    api_key: $OPENAI_API_KEY`;

interface ConnectModelProps {
  onlyDemo?: boolean;
  /** Others read who connects models. */
  isAdmin: boolean;
  /**
   * Providers that an administrator may connect here; null if keys are set elsewhere, which the section itself
   * explains.
   */
  connections: Connection[] | null;
  onConnected: (models: number) => void;
}

/** Ways to connect a real model. Unfolded if there is none. */
export function ConnectModel({ onlyDemo, isAdmin, connections, onConnected }: ConnectModelProps) {
  const t = useT("models");
  if (onlyDemo)
    return (
      <section className="flex flex-col gap-4 rounded-xl bg-primary-soft p-4 sm:p-5">
        <div className="flex items-start gap-3">
          <Sparkles aria-hidden className="mt-0.5 size-4 shrink-0 text-primary" />
          <div>
            <h2 className="text-sm font-semibold">{t("demoTitle")}</h2>
            <p className="mt-0.5 text-[13px] leading-relaxed">
              {t(!isAdmin ? "demoMember" : connections ? "demoConnect" : "demoText")}
            </p>
          </div>
        </div>
        {connections ? (
          <div className="rounded-lg border bg-card p-4">
            <ConnectForm connections={connections} onConnected={onConnected} />
          </div>
        ) : (
          isAdmin && <Ways />
        )}
      </section>
    );
  return (
    <Collapsible className="rounded-xl border">
      <CollapsibleTrigger className="group flex min-h-11 w-full items-center justify-between gap-3 rounded-xl px-4 text-left text-sm font-medium sm:px-5">
        {t("moreTitle")}
        <ChevronDown
          aria-hidden
          className="size-4 text-muted-foreground transition-transform group-data-[state=open]:rotate-180"
        />
      </CollapsibleTrigger>
      <CollapsibleContent>
        <div className="px-4 pb-4 sm:px-5">
          {connections ? <ConnectForm connections={connections} onConnected={onConnected} /> : <Ways />}
        </div>
      </CollapsibleContent>
    </Collapsible>
  );
}

function Ways() {
  const t = useT("models");
  return (
    <ol className="flex flex-col gap-3">
      <Way icon={<KeyRound aria-hidden />} title={t("keyTitle")} code="OPENAI_API_KEY=sk-…">
        <p>{t("keyText")}</p>
        <p className="mt-1 text-xs">{t.rich("keyNames", { names: KEYS.join(", ") })}</p>
      </Way>
      <Way icon={<FileText aria-hidden />} title={t("fileTitle")} code={ENTRY}>
        <p>{t.rich("fileText", { command: (text) => <Code>{text}</Code> })}</p>
      </Way>
      <li className="px-1 text-[13px] leading-relaxed text-muted-foreground">{t("localText")}</li>
    </ol>
  );
}

function Way({
  icon,
  title,
  code,
  children,
}: {
  icon: ReactNode;
  title: string;
  code: string;
  children: ReactNode;
}) {
  return (
    <li className="flex flex-col gap-2.5 rounded-lg border bg-card p-4">
      <h3 className="flex items-center gap-2 text-sm font-medium [&_svg]:size-4 [&_svg]:text-muted-foreground">
        {icon}
        {title}
      </h3>
      <div className="text-[13px] leading-relaxed text-muted-foreground">{children}</div>
      <div className="relative">
        <pre
          tabIndex={0}
          aria-label={title}
          className="overflow-x-auto rounded-lg border bg-code p-3 pr-11 font-mono text-xs leading-relaxed text-code-foreground"
        >
          {code}
        </pre>
        <CopyButton value={code} className="absolute top-1.5 right-1.5 bg-code" />
      </div>
    </li>
  );
}
