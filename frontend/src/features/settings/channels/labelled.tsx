import { Switch } from "@/ui/switch";

interface LabelledProps {
  id: string;
  label: string;
  hint?: string;
  checked: boolean;
  onChange: (on: boolean) => void;
}

/** A switch with its name, and what to know about it. */
export function Labelled({ id, label, hint, checked, onChange }: LabelledProps) {
  return (
    <div className="flex items-start gap-3">
      <div className="min-w-0 flex-1">
        <p id={`channel-${id}`} className="text-[13px] font-medium">
          {label}
        </p>
        {hint && (
          <p id={`channel-${id}-hint`} className="mt-0.5 text-xs leading-relaxed text-muted-foreground">
            {hint}
          </p>
        )}
      </div>
      <Switch
        checked={checked}
        onCheckedChange={onChange}
        aria-labelledby={`channel-${id}`}
        {...(hint ? { "aria-describedby": `channel-${id}-hint` } : {})}
      />
    </div>
  );
}
