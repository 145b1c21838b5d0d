const RTL = /[\p{sc=Hebrew}\p{sc=Arabic}\p{sc=Syriac}\p{sc=Thaana}\p{sc=Nko}\p{sc=Adlam}]/gu;
const LETTER = /\p{L}/gu;

/** The direction of a table or list as a whole: names in another script do not change it. null: it has no letters. */
export function directionOf(text: string): "ltr" | "rtl" | null {
  const letters = text.match(LETTER)?.length ?? 0;
  if (letters === 0) return null;
  return 3 * (text.match(RTL)?.length ?? 0) >= letters ? "rtl" : "ltr";
}
