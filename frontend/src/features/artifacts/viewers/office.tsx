"use client";
import { useQuery } from "@tanstack/react-query";
import { FileWarning } from "lucide-react";
import { useEffect, useState, type ReactNode } from "react";
import { useT } from "@/i18n";
import { fileUrl, nameOf } from "@/lib/files";
import { request } from "@/lib/http";
import { Button } from "@/ui/button";
import { EmptyState } from "@/ui/empty-state";
import { ErrorState } from "@/ui/error-state";
import { SegmentedControl } from "@/ui/segmented";
import type { FileAt } from "../api";
import { readSheets, type Comment, type Sheet } from "../office/excel";
import { MAX_FILE, OfficeError, OfficePackage } from "../office/package";
import { readSlides, type Deck, type Line } from "../office/slides";
import { readWord } from "../office/word";
import { Grid } from "./table";
import { Waiting } from "./text-frame";
import type { ViewerProps } from "./types";
import Unknown from "./unknown";

type Content = { text: ReactNode } | { sheets: Sheet[] } | { deck: Deck };

/** A document of Word, Excel or PowerPoint, read in the browser: nothing in it is run. */
export default function OfficeViewer(props: ViewerProps) {
  const { file } = props;
  const t = useT("viewers");
  const view = useT("artifacts.view");
  const { data, error, refetch } = useContent(file);
  if (!/\.(docx|xlsx|xlsm|pptx)$/i.test(file.path)) return <Unknown {...props} />;
  if (error instanceof OfficeError)
    return (
      <EmptyState
        icon={<FileWarning />}
        title={t(`office.${error.fault}`)}
        text={t("unknown.text")}
        className="flex-1"
        action={
          <Button asChild size="sm">
            <a
              href={fileUrl(file.threadId, file.path, { version: file.version, download: true })}
              download={nameOf(file.path)}
            >
              {view("download")}
            </a>
          </Button>
        }
      />
    );
  if (error) return <ErrorState error={error} retry={() => void refetch()} />;
  if (!data) return <Waiting />;
  if ("sheets" in data) return <Book name={nameOf(file.path)} sheets={data.sheets} />;
  if ("deck" in data) return <Slides deck={data.deck} />;
  return (
    <div tabIndex={0} className="min-h-0 flex-1 overflow-y-auto -outline-offset-2">
      <article className="prose-chat mx-auto max-w-3xl px-6 py-6">
        <div className="space-y-4">{data.text}</div>
      </article>
    </div>
  );
}

function useContent(file: FileAt) {
  const t = useT("viewers.office");
  const [office, setOffice] = useState<OfficePackage | null>(null);
  useEffect(() => () => office?.close(), [office]);
  return useQuery({
    queryKey: ["office", file.threadId, file.path, file.version ?? "now", file.etag],
    queryFn: async ({ signal }): Promise<Content> => {
      if (file.size > MAX_FILE) throw new OfficeError("tooLarge");
      const answer = await request("GET", fileUrl(file.threadId, file.path, { version: file.version }), {
        signal,
      });
      const opened = OfficePackage.open(new Uint8Array(await answer.arrayBuffer()));
      setOffice(opened);
      try {
        if (/\.docx$/i.test(file.path)) return { text: await readWord(opened) };
        if (/\.pptx$/i.test(file.path)) return { deck: await readSlides(opened) };
        const uncalculated = (formula: string) =>
          formula ? t("uncalculated", { formula: `=${formula}` }) : t("uncalculatedShort");
        return { sheets: await readSheets(opened, uncalculated) };
      } catch (error) {
        throw error instanceof OfficeError ? error : new OfficeError("damaged");
      }
    },
    enabled: /\.(docx|xlsx|xlsm|pptx)$/i.test(file.path),
    retry: (count, error) => !(error instanceof OfficeError) && count < 2,
    staleTime: Infinity,
    gcTime: 0, // its pictures end with it
  });
}

function Book({ name, sheets }: { name: string; sheets: Sheet[] }) {
  const t = useT("viewers.office");
  const [chosen, setChosen] = useState(0);
  const sheet = sheets[chosen];
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      {sheets.length > 1 && (
        <div className="shrink-0 overflow-x-auto border-b p-1.5">
          <SegmentedControl
            label={t("sheets")}
            value={String(chosen)}
            options={sheets.map((one, index) => ({ value: String(index), label: one.name }))}
            onValueChange={(value) => setChosen(Number(value))}
          />
        </div>
      )}
      <div className="relative min-h-0 flex-1">
        {sheet && <Grid key={chosen} name={name} rows={sheet.rows} all={sheet.total} places={sheet} />}
      </div>
      {sheet && sheet.comments.length > 0 && <Comments comments={sheet.comments} />}
    </div>
  );
}

function Comments({ comments }: { comments: Comment[] }) {
  const t = useT("viewers.office");
  return (
    <section
      tabIndex={0}
      aria-label={t("comments")}
      className="max-h-[30%] shrink-0 space-y-1.5 overflow-y-auto border-t px-4 py-2 text-[13px] -outline-offset-2"
    >
      {comments.map(({ place, author, text }, index) => (
        <div key={index} className="flex gap-3">
          <span className="min-w-8 shrink-0 font-medium tabular-nums">{place}</span>
          <div className="min-w-0">
            <p className="text-xs leading-5 font-medium text-muted-foreground">
              {author ? t("commentBy", { author }) : t("comment")}
            </p>
            <p dir="auto" className="break-words whitespace-pre-wrap">
              {text}
            </p>
          </div>
        </div>
      ))}
    </section>
  );
}

function Slides({ deck }: { deck: Deck }) {
  const t = useT("viewers.office");
  const part = (value: number) => `${value * 100}%`;
  return (
    <ol tabIndex={0} className="min-h-0 flex-1 space-y-5 overflow-y-auto bg-muted p-4 -outline-offset-2">
      {deck.slides.map(({ background, shapes, notes }, index) => (
        <li
          key={index}
          aria-label={t("slide", { n: index + 1, all: deck.slides.length })}
          className="mx-auto max-w-4xl"
        >
          <div
            className="@container relative overflow-hidden rounded-md border text-black shadow-sm"
            style={{ background, aspectRatio: `${deck.width} / ${deck.height}` }}
          >
            {shapes.map((shape, key) => (
              <div
                key={key}
                className="absolute flex flex-col overflow-hidden"
                style={{
                  left: part(shape.x),
                  top: part(shape.y),
                  width: part(shape.width),
                  height: part(shape.height),
                  background: shape.fill,
                  borderRadius: shape.round ? "8%" : undefined,
                  justifyContent: shape.anchor,
                  padding: shape.lines.length > 0 ? "0.5cqw 1cqw" : undefined,
                }}
              >
                {shape.picture && <img src={shape.picture} alt="" className="size-full object-fill" />}
                {shape.foreign && (
                  <p className="grid size-full place-items-center border border-dashed border-current text-[2cqw] opacity-60">
                    {t("notDrawn")}
                  </p>
                )}
                <Text lines={shape.lines} deck={deck} />
                {shape.table && (
                  <table className="w-full border-collapse">
                    <tbody>
                      {shape.table.map((row, y) => (
                        <tr key={y}>
                          {row.map((cell, x) => (
                            <td
                              key={x}
                              className="border border-current/30 px-[0.8cqw] py-[0.4cqw] align-top"
                            >
                              <Text lines={cell} deck={deck} />
                            </td>
                          ))}
                        </tr>
                      ))}
                    </tbody>
                  </table>
                )}
              </div>
            ))}
          </div>
          <p className="mt-1.5 text-center text-xs text-muted-foreground tabular-nums">
            {index + 1} / {deck.slides.length}
          </p>
          {notes && (
            <section
              aria-label={t("speakerNotes")}
              className="mt-1.5 rounded-md border bg-background px-3 py-2"
            >
              <p className="text-xs font-medium text-muted-foreground">{t("speakerNotes")}</p>
              <p dir="auto" className="mt-0.5 text-[13px] break-words whitespace-pre-wrap">
                {notes}
              </p>
            </section>
          )}
        </li>
      ))}
    </ol>
  );
}

function Text({ lines, deck }: { lines: Line[]; deck: Deck }) {
  const cqw = (points: number) => `${(points / deck.width) * 100}cqw`;
  return lines.map((line, key) => (
    <p
      key={key}
      className="leading-[1.2] whitespace-pre-wrap"
      style={{ textAlign: line.align, paddingInlineStart: `${line.level * 2}cqw`, minHeight: "1cqw" }}
    >
      {line.runs.map((run, index) => (
        <span
          key={index}
          style={{
            fontSize: cqw(run.size),
            fontWeight: run.bold ? 650 : undefined,
            fontStyle: run.italic ? "italic" : undefined,
            color: run.colour,
          }}
        >
          {index === 0 && line.bullet && "• "}
          {run.text}
        </span>
      ))}
    </p>
  ));
}
