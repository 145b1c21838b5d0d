import { cn } from "@/lib/cn";

/** The mark: two antlers that flow into one, around a node. In the colour of the text around it. */
export function Logo({ className }: { className?: string }) {
  return (
    <svg viewBox="2 2 28 28" fill="none" aria-hidden className={cn("size-6", className)}>
      <path
        d="M16 28C16 19 5.5 19 5.5 5M7.6 13.2C11.6 13 13 10.3 13 6.5M16 28C16 19 26.5 19 26.5 5M24.4 13.2C20.4 13 19 10.3 19 6.5"
        stroke="currentColor"
        strokeWidth="3"
        strokeLinecap="round"
        strokeLinejoin="round"
      />
      <circle cx="16" cy="16.2" r="2.3" fill="currentColor" />
    </svg>
  );
}
