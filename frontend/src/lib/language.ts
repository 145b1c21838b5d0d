/** The language of a text, as BCP 47 names it, for voices that read it: by its script, else by its small words. */
const SCRIPTS: [RegExp, string][] = [
  [/\p{sc=Hiragana}|\p{sc=Katakana}/gu, "ja"],
  [/\p{sc=Hangul}/gu, "ko"],
  [/\p{sc=Han}/gu, "zh-CN"],
  [/\p{sc=Cyrillic}/gu, "ru"],
  [/\p{sc=Arabic}/gu, "ar"],
  [/\p{sc=Hebrew}/gu, "he"],
  [/\p{sc=Devanagari}/gu, "hi"],
  [/\p{sc=Thai}/gu, "th"],
  [/\p{sc=Greek}/gu, "el"],
];
const WORDS: Record<string, string> = {
  en: "the and of to is that for with are this you it not from was have",
  de: "der die das und ist nicht mit für von den ein eine auf werden sich auch",
  fr: "le la les et est une des pour dans que pas avec sur vous sont du",
  es: "el los las y es una para con que por no del son más como se",
  it: "il gli e è una per con che non del della sono più come di nel",
  pt: "o os as e é uma para com que não do da são mais como em",
  nl: "de het een en is niet van voor met op zijn dat ook aan worden te",
};
const SETS = Object.entries(WORDS).map(([language, words]) => [language, new Set(words.split(" "))] as const);
/** Small words that a text must have at least, and as part of all of them: two tell nothing. */
const FEWEST = 3;

/** `fallback`: where the text itself says too little. */
export function languageOf(text: string, fallback: string): string {
  const letters = text.match(/\p{L}/gu)?.length ?? 0;
  if (letters === 0) return fallback;
  const found = SCRIPTS.find(([script]) => 5 * (text.match(script)?.length ?? 0) >= letters);
  if (found) return found[1];
  const words = text.toLowerCase().match(/\p{L}+/gu) ?? [];
  const counts = SETS.map(
    ([language, set]) => [language, words.filter((word) => set.has(word)).length] as const,
  );
  const [best, second] = counts.toSorted((a, b) => b[1] - a[1]);
  return best && second && best[1] >= FEWEST && best[1] > second[1] ? best[0] : fallback;
}
