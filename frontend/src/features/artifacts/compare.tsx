"use client";
import { useQuery } from "@tanstack/react-query";
import { Columns2, Equal, Rows2 } from "lucide-react";
import { Suspense } from "react";
import { useT } from "@/i18n";
import { late } from "@/lib/late";
import { useStored } from "@/lib/storage";
import { EmptyState } from "@/ui/empty-state";
import { ErrorState } from "@/ui/error-state";
import { SegmentedControl } from "@/ui/segmented";
import { readText, type FileAt } from "./api";
import { nameOf } from "@/lib/files";
import { Waiting } from "./viewers/text-frame";

const Merge = late(() => import("./viewers/merge"));
const LARGEST = 1 << 20;

type Layout = "unified" | "split";

/** A version beside what the file is now. */
export function Compare({ file }: { file: FileAt }) {
  const t = useT("artifacts.versions");
  const { data, error, refetch } = useQuery({
    queryKey: ["compare", file.threadId, file.path, file.version],
    queryFn: async () => {
      const [older, newer] = await Promise.all([readText(file), readText({ ...file, version: null })]);
      return { older: older.text, newer: newer.text };
    },
    staleTime: 0,
    gcTime: 0,
  });
  if (!data) return error ? <ErrorState error={error} retry={() => void refetch()} /> : <Waiting />;
  if (data.older === data.newer) return <EmptyState icon={<Equal />} title={t("same")} className="flex-1" />;
  if (Math.max(data.older.length, data.newer.length) > LARGEST)
    return <EmptyState title={t("tooLarge")} className="flex-1" />;
  return (
    <Difference
      before={data.older}
      after={data.newer}
      filename={nameOf(file.path)}
      beforeLabel={t("older", { n: file.version ?? 0 })}
      afterLabel={t("newer")}
    />
  );
}

interface DifferenceProps {
  before: string;
  after: string;
  filename: string;
  beforeLabel: string;
  afterLabel: string;
}

export function Difference({ before, after, filename, beforeLabel, afterLabel }: DifferenceProps) {
  const t = useT("artifacts.diff");
  const common = useT("common");
  const [layout, setLayout] = useStored<Layout>("files.diff", "unified");
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div className="flex min-h-10 shrink-0 items-center gap-2 border-b px-4 py-1 text-xs">
        <span className="rounded-full bg-destructive-soft px-2 leading-5 text-destructive">
          − {beforeLabel}
        </span>
        <span className="rounded-full bg-success-soft px-2 leading-5 text-success">+ {afterLabel}</span>
        <span className="flex-1" />
        <SegmentedControl<Layout>
          label={t("layout")}
          size="sm"
          hideLabels
          value={layout}
          onValueChange={setLayout}
          options={[
            { value: "unified", label: t("unified"), icon: <Rows2 aria-hidden /> },
            { value: "split", label: t("split"), icon: <Columns2 aria-hidden /> },
          ]}
        />
      </div>
      <div className="min-h-0 flex-1">
        <Suspense fallback={<Waiting />}>
          <Merge
            before={before}
            after={after}
            filename={filename}
            layout={layout}
            label={common("diff.label", { name: filename })}
          />
        </Suspense>
      </div>
    </div>
  );
}
