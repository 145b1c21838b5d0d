"use client";
import { Inbox } from "lucide-react";
import { useT } from "@/i18n";
import { useWaiting } from "@/lib/waiting";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { setInbox } from "./open";

interface WaitingButtonProps {
  /** Only the picture and the number. */
  small?: boolean;
  /** It was pressed. */
  onOpen?: () => void;
}

export default function WaitingButton({ small = false, onOpen }: WaitingButtonProps) {
  const t = useT("threads");
  const count = useWaiting().data?.length ?? 0;
  if (count === 0) return null;
  const open = () => {
    onOpen?.();
    setInbox(true);
  };
  const label = `${t("state.waiting")}: ${count}`;
  if (small)
    return (
      <Button
        variant="ghost"
        size="icon"
        aria-label={label}
        title={label}
        aria-haspopup="dialog"
        className="relative"
        onClick={open}
      >
        <Inbox aria-hidden />
        <Badge
          aria-hidden
          variant="solid"
          className="absolute -top-0.5 -right-0.5 h-4 min-w-4 justify-center px-1 text-[10px]"
        >
          {count}
        </Badge>
      </Button>
    );
  return (
    <Button
      variant="ghost"
      aria-label={label}
      aria-haspopup="dialog"
      className="w-full justify-start gap-2.5 px-2.5 font-medium pointer-coarse:h-11"
      onClick={open}
    >
      <Inbox aria-hidden className="text-warning" />
      {t("state.waiting")}{" "}
      <Badge aria-hidden variant="solid" className="ml-auto min-w-5 justify-center px-1.5 tabular-nums">
        {count}
      </Badge>
    </Button>
  );
}
