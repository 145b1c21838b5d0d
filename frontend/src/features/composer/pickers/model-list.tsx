"use client";
import { Command } from "cmdk";
import { BrainCircuit, Check, Eye, Gauge, Search } from "lucide-react";
import type { ReactNode } from "react";
import { useT } from "@/i18n";
import type { Model } from "@/lib/api";
import { cn } from "@/lib/cn";
import { formatTokens } from "@/lib/format";
import type { useRunChoice } from "@/lib/run-settings";
import { ErrorState } from "@/ui/error-state";

interface ModelListProps {
  choice: ReturnType<typeof useRunChoice>;
  onPick: (model: Model) => void;
}

/** The models that there are, to be searched and picked. */
export default function ModelList({ choice: { models, model, query }, onPick }: ModelListProps) {
  const t = useT("composer");
  return (
    <Command label={t("modelPick")} loop className="flex min-h-0 flex-col" defaultValue={model?.name}>
      <div className="flex items-center gap-2 border-b px-3">
        <Search aria-hidden className="size-4 shrink-0 text-muted-foreground" />
        <Command.Input
          placeholder={t("modelSearch")}
          className="h-10 w-full bg-transparent text-sm outline-none pointer-coarse:text-base"
        />
      </div>
      <Command.List className="max-h-80 overflow-y-auto p-1">
        {query.error ? (
          <ErrorState compact error={query.error} retry={() => void query.refetch()} />
        ) : (
          <Command.Empty className="px-3 py-6 text-center text-sm text-muted-foreground">
            {models.length || query.isLoading ? t("modelNone") : t("modelNoneAtAll")}
          </Command.Empty>
        )}
        {models.map((one) => (
          <Item key={one.name} model={one} chosen={one.name === model?.name} onPick={() => onPick(one)} />
        ))}
      </Command.List>
    </Command>
  );
}

function Item({ model, chosen, onPick }: { model: Model; chosen: boolean; onPick: () => void }) {
  const t = useT("composer");
  return (
    <Command.Item
      value={model.name}
      keywords={[model.display_name, model.model, model.description ?? ""]}
      disabled={!!model.problem}
      onSelect={onPick}
      className="flex cursor-default items-start gap-2 rounded-lg px-2 py-2 outline-none select-none data-[disabled=true]:opacity-70 data-[selected=true]:bg-accent"
    >
      <Check aria-hidden className={cn("mt-0.5 size-4 shrink-0 text-primary", !chosen && "invisible")} />
      <div className="min-w-0 flex-1">
        <div className="flex items-center gap-2">
          <span className="truncate text-sm font-medium">{model.display_name}</span>
          {model.is_default && (
            <span className="shrink-0 text-xs text-muted-foreground">{t("modelDefault")}</span>
          )}
          <span className="ml-auto flex shrink-0 items-center gap-1.5 text-muted-foreground">
            {model.supports_vision && <Ability label={t("ability.vision")} icon={<Eye />} />}
            {model.supports_thinking && <Ability label={t("ability.thinking")} icon={<BrainCircuit />} />}
            {model.supports_reasoning_effort && <Ability label={t("ability.effort")} icon={<Gauge />} />}
            {model.context_window && (
              <span
                className="text-xs tabular-nums"
                title={t("ability.window", { tokens: formatTokens(model.context_window) })}
              >
                {formatTokens(model.context_window)}
              </span>
            )}
          </span>
        </div>
        {model.description && (
          <p className="line-clamp-2 text-xs text-muted-foreground">{model.description}</p>
        )}
        {model.problem && (
          <p className="text-xs text-warning">{t("modelMissing", { names: model.missing.join(", ") })}</p>
        )}
      </div>
    </Command.Item>
  );
}

function Ability({ label, icon }: { label: string; icon: ReactNode }) {
  return (
    <span role="img" aria-label={label} title={label} className="[&_svg]:size-3.5">
      {icon}
    </span>
  );
}
