import { TriangleAlert } from "lucide-react";

/** Read out once when it appears; the seconds that count down in it are not read again and again. */
export function FormError({ message }: { message: string | null }) {
  return (
    <div role="alert" aria-atomic={false} aria-relevant="additions" className="empty:hidden">
      {message && (
        <p className="flex items-start gap-2 rounded-lg bg-destructive-soft px-3 py-2 text-[13px] leading-5 text-destructive">
          <TriangleAlert aria-hidden className="mt-0.5 size-4 shrink-0" />
          <span className="min-w-0 break-words">{message}</span>
        </p>
      )}
    </div>
  );
}
