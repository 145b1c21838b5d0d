"use client";
import { BellOff, Send } from "lucide-react";
import { useState, useSyncExternalStore } from "react";
import { useT } from "@/i18n";
import { useStored } from "@/lib/storage";
import { Button } from "@/ui/button";
import { Switch } from "@/ui/switch";
import { Group, Note, Panel, Row } from "../parts";

type Permission = NotificationPermission | "insecure" | "unsupported";

export default function NotificationsSection() {
  const t = useT("notifications");
  const [enabled, setEnabled] = useStored<boolean>("notifications", false);
  const [permission, ask] = usePermission();
  const [test, setTest] = useState<"sent" | "unsupported" | null>(null);
  const isPossible = permission === "granted" || permission === "default";
  const isOn = enabled && permission === "granted";
  const turn = async (on: boolean) => setEnabled(on && (await ask()) === "granted");
  return (
    <Group>
      {!isPossible && (
        <Note tone="warning" icon={<BellOff aria-hidden />}>
          <p className="font-medium">{t(permission)}</p>
          {permission === "denied" && <p className="text-foreground">{t("deniedText")}</p>}
        </Note>
      )}
      <Panel>
        <Row inline label={<label htmlFor="notify">{t("enabled")}</label>} hint={t("enabledText")}>
          <Switch id="notify" checked={isOn} disabled={!isPossible} onCheckedChange={(on) => void turn(on)} />
        </Row>
        <Row label={t("test")} hint={<span role="status">{test ? t(test) : t("testText")}</span>}>
          <Button
            variant="outline"
            size="sm"
            disabled={!isOn}
            onClick={() => setTest(show(t("testTitle"), t("testBody")) ? "sent" : "unsupported")}
          >
            <Send aria-hidden />
            {t("test")}
          </Button>
        </Row>
      </Panel>
    </Group>
  );
}

function show(title: string, body: string): boolean {
  try {
    new Notification(title, { body, icon: "/icon.svg", tag: "test" });
    return true;
  } catch {
    return false; // phones allow notifications only from a service worker
  }
}

function read(): Permission {
  if (!window.isSecureContext) return "insecure";
  return "Notification" in window ? Notification.permission : "unsupported";
}

/** The browser's permission, also when it is changed in its settings; and how to ask for it. */
function usePermission(): [Permission, () => Promise<Permission>] {
  const [, refresh] = useState(0);
  const permission = useSyncExternalStore<Permission>(watch, read, () => "default");
  const ask = async () => {
    const answer = read() === "default" ? await Notification.requestPermission() : read();
    refresh((count) => count + 1);
    return answer;
  };
  return [permission, ask];
}

function watch(changed: () => void) {
  let status: PermissionStatus | undefined;
  window.addEventListener("focus", changed);
  navigator.permissions
    ?.query({ name: "notifications" })
    .then((found) => (status = found).addEventListener("change", changed))
    .catch(() => undefined);
  return () => {
    window.removeEventListener("focus", changed);
    status?.removeEventListener("change", changed);
  };
}
