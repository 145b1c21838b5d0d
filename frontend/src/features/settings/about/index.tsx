"use client";
import { useQuery } from "@tanstack/react-query";
import { ExternalLink, TriangleAlert } from "lucide-react";
import { useT } from "@/i18n";
import { keys } from "@/lib/keys";
import { Button } from "@/ui/button";
import { CopyButton } from "@/ui/copy-button";
import { Logo } from "@/ui/logo";
import { system, type SystemInfo } from "./api";
import { Guide } from "./guide";
import { Facts, Group, Note, Waiting } from "../parts";
import { useItem } from "../parts/use-item";

export default function AboutSection() {
  const t = useT("about");
  const { data, error, refetch } = useQuery({ queryKey: keys.system, queryFn: system });
  const [name, open] = useItem();
  if (name !== null) return <Guide name={name} onOpen={open} />;
  return (
    <>
      <div className="flex flex-wrap items-center gap-4 rounded-xl border bg-card p-5">
        <div className="flex size-12 items-center justify-center rounded-2xl bg-primary text-primary-foreground">
          <Logo className="size-7" />
        </div>
        <div className="min-w-0 flex-1">
          <p className="font-display text-lg font-semibold">DeerFlow {data?.version}</p>
          <p className="text-[13px] text-muted-foreground">{t("licenceText")}</p>
        </div>
        <Button variant="outline" size="sm" onClick={() => open("workspace")}>
          {t("help")}
        </Button>
        <Button variant="outline" size="sm" onClick={() => open("changes")}>
          {t("changes")}
        </Button>
        <Button variant="outline" size="sm" asChild>
          <a href="/docs" target="_blank" rel="noreferrer">
            {t("apiDocs")}
            <ExternalLink aria-hidden />
          </a>
        </Button>
      </div>
      {!data ? <Waiting error={error} retry={refetch} rows={4} /> : <Environment info={data} />}
    </>
  );
}

function Environment({ info }: { info: SystemInfo }) {
  const t = useT("about");
  const { config } = info;
  const items = [
    { name: t("python"), value: info.python },
    { name: t("platform"), value: info.platform },
    { name: t("database"), value: t(`database_kind.${info.database.kind}`) },
    { name: t("authentication"), value: t(info.authentication === "accounts" ? "accounts" : "open") },
    { name: t("registration"), value: t(info.registration ? "registrationOpen" : "registrationClosed") },
    ...(info.database.data_dir ? [{ name: t("dataDir"), value: info.database.data_dir }] : []),
    ...(config ? [{ name: t("configFile"), value: config.file ?? t("noConfigFile") }] : []),
  ];
  return (
    <Group
      title={t("environment")}
      action={<CopyButton value={() => report(info)} withText label={t("copy")} />}
    >
      <Facts items={items} />
      {config?.problem && (
        <Note tone="destructive" icon={<TriangleAlert aria-hidden />}>
          <p className="font-medium">{t("configProblem")}</p>
          <p className="whitespace-pre-wrap">{config.problem}</p>
        </Note>
      )}
      {config?.warnings.map((warning) => (
        <Note key={warning} tone="warning" icon={<TriangleAlert aria-hidden />}>
          {warning}
        </Note>
      ))}
    </Group>
  );
}

/** For a report of a bug: in English, whatever the language of the page, and without paths. */
const report = (info: SystemInfo) =>
  [
    `DeerFlow ${info.version}`,
    `Python ${info.python}, ${info.platform}`,
    `Database: ${info.database.kind}`,
    `Sandbox: ${info.sandbox.provider}, ${info.sandbox.isolation}, network ${info.sandbox.network}`,
    `Browser: ${navigator.userAgent}`,
  ].join("\n");
