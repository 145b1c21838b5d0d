"use client";
import { useQuery } from "@tanstack/react-query";
import { ShieldAlert, ShieldCheck, TriangleAlert } from "lucide-react";
import { useLocale, useT, useWords } from "@/i18n";
import { worded } from "@/i18n/worded";
import { formatDuration } from "@/lib/format";
import { keys } from "@/lib/keys";
import { Badge } from "@/ui/badge";
import { system, type Sandbox } from "../about/api";
import { Code, Facts, Group, Note, Panel, Row, Waiting } from "../parts";

export default function SandboxSection() {
  const t = useT("sandbox");
  const { data, error, refetch } = useQuery({ queryKey: keys.system, queryFn: system });
  if (!data) return <Waiting error={error} retry={refetch} />;
  const { sandbox } = data;
  return (
    <>
      <Group>
        <Confinement sandbox={sandbox} />
        {sandbox.warnings.map((warning) => (
          <Note key={warning} tone="warning" icon={<TriangleAlert aria-hidden />}>
            {warning}
          </Note>
        ))}
      </Group>
      {sandbox.problems.length > 0 && <Problems sandbox={sandbox} />}
      <Panel>
        <Row label={t("network")} hint={t(`mode.${sandbox.network}`)}>
          {sandbox.network === "allowlist" && (
            <div className="flex max-w-72 flex-wrap gap-1.5 sm:justify-end" aria-label={t("hosts")}>
              {sandbox.allowed_hosts.map((host) => (
                <Code key={host}>{host}</Code>
              ))}
            </div>
          )}
        </Row>
        <Row label={t("packages")} hint={<Packages sandbox={sandbox} />} />
      </Panel>
      <Limits sandbox={sandbox} />
      {data.config && (
        <p className="text-[13px] text-muted-foreground">
          {t.rich("doctor", { command: (text) => <Code>{text}</Code> })}
        </p>
      )}
    </>
  );
}

function Confinement({ sandbox }: { sandbox: Sandbox }) {
  const t = useT("sandbox");
  const isStrong = sandbox.isolation !== "none" && sandbox.isolation !== "landlock";
  const verdict = !sandbox.available
    ? "unavailable"
    : isStrong
      ? "strong"
      : sandbox.isolation === "none"
        ? "unprotected"
        : "limited";
  const Icon = verdict === "strong" ? ShieldCheck : ShieldAlert;
  const tones = {
    strong: "success",
    limited: "warning",
    unprotected: "destructive",
    unavailable: "warning",
  } as const;
  const colours = {
    success: "bg-success-soft text-success",
    warning: "bg-warning-soft text-warning",
    destructive: "bg-destructive-soft text-destructive",
  };
  return (
    <div className="flex items-start gap-4 rounded-xl border bg-card p-4 sm:p-5">
      <div
        className={`flex size-10 shrink-0 items-center justify-center rounded-xl ${colours[tones[verdict]]}`}
      >
        <Icon aria-hidden className="size-5" />
      </div>
      <div className="min-w-0">
        <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <h2 className="font-medium">{t(`level.${sandbox.isolation}`)}</h2>
          <Badge variant={tones[verdict]}>{t(verdict)}</Badge>
        </div>
        <p className="mt-1 text-[13px] leading-relaxed text-muted-foreground">
          {sandbox.available ? t(`levelText.${sandbox.isolation}`) : t("unavailableText")}
        </p>
        <p className="mt-1 text-xs text-muted-foreground">
          {t("provider")}: <span className="font-mono">{sandbox.provider}</span>
        </p>
      </div>
    </div>
  );
}

function Problems({ sandbox }: { sandbox: Sandbox }) {
  const t = useT("sandbox");
  return (
    <Group title={t("why")}>
      <Panel role="list">
        {sandbox.problems.map((problem) => (
          <Problem key={problem.code} {...problem} />
        ))}
      </Panel>
    </Group>
  );
}

/** The words of a program or a service stand below, unchanged. */
function Problem({ code, sentence, fix, values }: Sandbox["problems"][number]) {
  const [locale] = useLocale();
  const words = useWords().sandbox;
  const said = code in words.problem && values.said;
  return (
    <div role="listitem" className="px-4 py-3 text-[13px] leading-relaxed sm:px-5">
      <p>{worded(locale, words.problem, { code, values, detail: sentence })}</p>
      {said && <p className="font-mono text-xs leading-relaxed break-words">{said}</p>}
      <p className="text-muted-foreground">{worded(locale, words.fix, { code, values, detail: fix })}</p>
    </div>
  );
}

function Packages({ sandbox }: { sandbox: Sandbox }) {
  const t = useT("sandbox");
  const image = sandbox.tool_image;
  if (!image.enabled) return t("packagesOff");
  if (image.ready) return t("packagesReady");
  return image.problem ? `${t("packagesProblem")} (${image.problem})` : t("packagesWaiting");
}

function Limits({ sandbox }: { sandbox: Sandbox }) {
  const t = useT("sandbox");
  const [locale] = useLocale();
  const { limits } = sandbox;
  const shown = (value: number, text: (value: number) => string) => (value ? text(value) : t("unlimited"));
  const megabytes = (value: number) => (value % 1024 ? `${value} MB` : `${value / 1024} GB`);
  const seconds = (value: number) => formatDuration(value * 1000, locale);
  return (
    <Group title={t("limits")}>
      <Facts
        items={[
          { name: t("limit.processes"), value: shown(limits.processes, String) },
          { name: t("limit.memory"), value: shown(limits.memory_mb, megabytes) },
          { name: t("limit.disk"), value: shown(limits.disk_mb, megabytes) },
          { name: t("limit.file"), value: shown(limits.file_size_mb, megabytes) },
          { name: t("limit.timeout"), value: shown(sandbox.command_timeout, seconds) },
          { name: t("limit.cpu"), value: shown(limits.cpu_seconds, seconds) },
        ]}
      />
      <p className="px-1 text-xs leading-relaxed text-muted-foreground">
        {sandbox.enforced_limits.length
          ? t("enforced", {
              names: enforcedOf(sandbox.enforced_limits)
                .map((what) => t(`enforcement.${what}`))
                .join(t("and")),
            })
          : t("unenforced")}
      </p>
    </Group>
  );
}

/** Enforced limits, by the means that the server names. */
const ENFORCED = {
  memory: ["data", "memory-watch", "cgroup-memory"],
  disk: ["disk-watch"],
  file: ["fsize"],
  processes: ["nproc", "process-watch", "cgroup-pids"],
} as const;

function enforcedOf(means: readonly string[]) {
  const all = Object.keys(ENFORCED) as (keyof typeof ENFORCED)[];
  return all.filter((what) => ENFORCED[what].some((one) => means.includes(one)));
}
