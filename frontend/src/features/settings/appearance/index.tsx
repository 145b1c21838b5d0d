"use client";
import { useQuery } from "@tanstack/react-query";
import { Check } from "lucide-react";
import { useTheme } from "next-themes";
import { RadioGroup } from "radix-ui";
import { LOCALES, useLocale, useT, type Locale } from "@/i18n";
import { cn } from "@/lib/cn";
import { BY_BROWSER, featuresQuery, isSecure, recognitionOf } from "@/lib/dictation";
import { useStored } from "@/lib/storage";
import { SegmentedControl } from "@/ui/segmented";
import { Switch } from "@/ui/switch";
import { Group, Panel, Row } from "../parts";

const THEMES = ["system", "light", "dark"] as const;

export default function AppearanceSection() {
  const t = useT("appearance");
  const { theme, setTheme } = useTheme();
  const [locale, setLocale] = useLocale();
  return (
    <>
      <Group title={t("theme")}>
        <RadioGroup.Root
          value={theme}
          onValueChange={setTheme}
          aria-label={t("theme")}
          className="grid grid-cols-3 gap-3"
        >
          {THEMES.map((one) => (
            <RadioGroup.Item key={one} value={one} className="group flex flex-col gap-2 rounded-xl text-left">
              <div className="w-full overflow-hidden rounded-xl border-2 transition-colors group-hover:border-input group-data-[state=checked]:border-primary">
                <Preview theme={one} />
              </div>
              <span className="flex items-center gap-1.5 px-1 text-[13px] font-medium">
                {t(one)}
                <RadioGroup.Indicator>
                  <Check aria-hidden className="size-3.5 text-primary" />
                </RadioGroup.Indicator>
              </span>
            </RadioGroup.Item>
          ))}
        </RadioGroup.Root>
      </Group>
      <Panel>
        <Row label={t("language")} hint={t("languageText")}>
          <SegmentedControl
            label={t("language")}
            value={locale}
            onValueChange={setLocale}
            options={(Object.keys(LOCALES) as Locale[]).map((value) => ({ value, label: LOCALES[value] }))}
          />
        </Row>
        <BrowserDictation />
      </Panel>
    </>
  );
}

/** Off by default: the audio may leave the device. */
function BrowserDictation() {
  const t = useT("appearance.dictation");
  const { data } = useQuery(featuresQuery);
  const [chosen, choose] = useStored(BY_BROWSER, false);
  const hindrance = !isSecure() ? "insecure" : !recognitionOf() ? "unsupported" : null;
  const byServer = data?.transcription.enabled ?? false;
  const hint = hindrance ?? (byServer ? "server" : "text");
  return (
    <Row inline label={<label htmlFor="dictation">{t("title")}</label>} hint={t(hint)}>
      <Switch
        id="dictation"
        checked={chosen && !hindrance && !byServer}
        disabled={hindrance !== null || byServer}
        onCheckedChange={choose}
      />
    </Row>
  );
}

/** A page in small, in the colours of the theme; `system` is half of each. */
function Preview({ theme }: { theme: (typeof THEMES)[number] }) {
  if (theme !== "system") return <Page className={theme} />;
  return (
    <div aria-hidden className="relative">
      <Page className="light" />
      <div className="absolute inset-0 [clip-path:polygon(100%_0,100%_100%,0_100%)]">
        <Page className="dark" />
      </div>
    </div>
  );
}

function Page({ className }: { className: string }) {
  return (
    <div aria-hidden className={cn(className, "flex h-20 bg-background sm:h-24")}>
      <div className="flex w-1/4 flex-col gap-1.5 border-r bg-sidebar p-1.5 sm:p-2">
        <div className="h-1.5 w-full rounded-full bg-muted-foreground/35" />
        <div className="h-1.5 w-3/4 rounded-full bg-muted-foreground/20" />
        <div className="h-1.5 w-5/6 rounded-full bg-muted-foreground/20" />
      </div>
      <div className="flex flex-1 flex-col gap-1.5 p-2 sm:p-2.5">
        <div className="h-2.5 w-1/2 self-end rounded-full bg-primary-soft" />
        <div className="h-1.5 w-full rounded-full bg-foreground/25" />
        <div className="h-1.5 w-4/5 rounded-full bg-foreground/25" />
        <div className="mt-auto flex h-4 items-center justify-end rounded-md border px-1">
          <div className="size-2 rounded-full bg-primary" />
        </div>
      </div>
    </div>
  );
}
