import { cn } from "@/lib/cn";

/** The mark, in the colour of the text around it. */
export function Logo({ className }: { className?: string }) {
  return (
    <svg viewBox="8 5 32 34" fill="none" aria-hidden className={cn("size-6", className)}>
      <path
        d="M15 8c-1 7 1 10 6 12M12 14c3 1 5 2 7 5M33 8c1 7-1 10-6 12M36 14c-3 1-5 2-7 5"
        stroke="currentColor"
        strokeWidth="3"
        strokeLinecap="round"
      />
      <path
        d="M17 20h14l-3 14c-.7 3.600-7.300 3.600-8 0zM21 23.500a1.500 1.500 0 1 0 0 3 1.500 1.500 0 1 0 0-3M27 23.500a1.500 1.500 0 1 0 0 3 1.500 1.500 0 1 0 0-3"
        fill="currentColor"
        fillRule="evenodd"
      />
    </svg>
  );
}
