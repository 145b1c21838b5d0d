"use client";
import { ExternalLink } from "lucide-react";
import { useT } from "@/i18n";

/** Address of each platform's console. */
const CONSOLES: Record<string, string> = {
  telegram: "https://t.me/BotFather",
  slack: "https://api.slack.com/apps",
  feishu: "https://open.feishu.cn/app",
  discord: "https://discord.com/developers/applications",
  dingtalk: "https://open-dev.dingtalk.com/",
  wecom: "https://work.weixin.qq.com/",
};
const STEPS = [
  "telegram",
  "slack",
  "feishu",
  "discord",
  "email",
  "webhook",
  "github",
  "dingtalk",
  "wecom",
  "wechat",
] as const;

/** The way to the bot's secrets, as the platform's documentation has it. */
export function Steps({ kind }: { kind: string }) {
  const t = useT("channels");
  const known = STEPS.find((one) => one === kind);
  if (!known) return null;
  return (
    <div className="flex flex-col gap-2 rounded-xl border bg-muted/40 px-4 py-3">
      <ol className="flex list-decimal flex-col gap-1 pl-4 text-[13px] leading-relaxed">
        {t(`steps.${known}`)
          .split("\n")
          .map((step) => (
            <li key={step}>{step}</li>
          ))}
      </ol>
      <p className="flex flex-wrap gap-x-3 text-xs text-muted-foreground">
        {CONSOLES[kind] && (
          <a
            href={CONSOLES[kind]}
            target="_blank"
            rel="noreferrer"
            className="inline-flex items-center gap-1 text-primary underline-offset-4 hover:underline"
          >
            {t("console")}
            <ExternalLink aria-hidden className="size-3" />
          </a>
        )}
        <span>{t("asOf")}</span>
      </p>
    </div>
  );
}
