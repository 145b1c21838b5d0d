import { createTranslator } from "use-intl";
import type { Refusal } from "@/lib/http";

/** The words for the finest cause that is known here; the server's own sentence where none is, or a value is missing. */
export function worded(locale: string, words: Record<string, string>, refusal: Refusal): string {
  const { detail, reason, code, values } = refusal;
  const cause = [reason, code].find((one) => one !== undefined && Object.hasOwn(words, one));
  if (cause === undefined) return detail;
  const t = createTranslator({
    locale,
    messages: words,
    onError: () => undefined,
    getMessageFallback: () => detail,
  });
  return t(cause, { ...values, detail });
}
