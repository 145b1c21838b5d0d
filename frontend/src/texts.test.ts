import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { SECTIONS } from "@/features/settings";
import { serverTexts, type Locale } from "@/i18n";
import { en as englishFirst } from "@/i18n/messages/en";
import { zh as chineseFirst } from "@/i18n/messages/zh";

const SRC = import.meta.dirname;

/** Texts that lie beside the part that shows them. */
const beside = (locale: Locale) =>
  readdirSync(SRC, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(`/${locale}.ts`))
    .map((file) => import(/* @vite-ignore */ join(SRC, file)) as Promise<object>);

/** The texts of the first load and those that come later. */
const whole = async (first: object, locale: Locale) =>
  Object.assign(
    {
      sections: SECTIONS.map(({ title, about, words }) =>
        [title, about, words].map((one) => one?.[locale] ?? "-"),
      ),
    },
    first,
    ...(await Promise.all([serverTexts[locale](), ...beside(locale)])),
  ) as object;
const english = await whole(englishFirst, "en");
const chinese = await whole(chineseFirst, "zh");

/** All texts by their whole keys, as in "chat.steps.thinking". */
function textsOf(tree: object, prefix = ""): [string, string][] {
  return Object.entries(tree).flatMap(([key, value]: [string, unknown]) =>
    typeof value === "string" ? [[prefix + key, value]] : textsOf(value as object, `${prefix}${key}.`),
  );
}

/** Names of the arguments and tags of an ICU message. Throws if its braces do not match. */
function argumentsOf(message: string): string[] {
  const found = new Set<string>();
  let at = 0;
  const take = (pattern: RegExp): RegExpExecArray => {
    const match = new RegExp(pattern.source, "uy");
    match.lastIndex = at;
    const result = match.exec(message);
    if (!result) throw new SyntaxError(`${message}: ${pattern.source} expected at ${at}`);
    at = match.lastIndex;
    return result;
  };
  const text = (nested: boolean) => {
    while (at < message.length && !(nested && message[at] === "}")) {
      const [, tag] = take(/[^{}<]+|<\/?(\w+)>|<|(?=[{}])/);
      if (tag) found.add(`<${tag}>`);
      if (message[at] === "{") argument();
      else if (message[at] === "}" && !nested) throw new SyntaxError(`${message}: stray } at ${at}`);
    }
  };
  const argument = () => {
    found.add(take(/\{\s*(\w+)\s*/)[1]!);
    const kind = /[,]/.test(message[at] ?? "") ? take(/,\s*(\w+)\s*/)[1] : undefined;
    if (kind === "plural" || kind === "select" || kind === "selectordinal") {
      take(/,\s*/);
      while (message[at] !== "}") {
        take(/(?:=\d+|\w+)\s*\{/);
        text(true);
        take(/\}\s*/);
      }
    } else if (kind) take(/[^}]*/);
    take(/\}/);
  };
  text(false);
  return [...found].sort();
}

const en = new Map(textsOf(english));
const zh = new Map(textsOf(chinese));

test("both languages have the same texts, and none is empty", () => {
  expect([...zh.keys()]).toEqual([...en.keys()]);
  expect([...en, ...zh].filter(([, text]) => text.trim() === "")).toEqual([]);
});

test("no text was left in English", () => {
  const same = [...en].filter(([key, text]) => zh.get(key) === text && /[a-z]{3,} [a-z]{3,}/i.test(text));
  expect(same).toEqual([]);
});

test("Chinese texts call one thing by one name", () => {
  const others = /您|词元|账户|极低|本对话|本次对话|从不允许|凭据|登陆|秘钥/;
  expect([...zh].filter(([, text]) => others.test(text))).toEqual([]);
});

test("both languages take the same arguments", () => {
  const taken = (texts: Map<string, string>) =>
    Object.fromEntries([...texts].map(([key, text]) => [key, argumentsOf(text)]));
  expect(taken(zh)).toEqual(taken(en));
});

test("arguments are found in plurals and tags, and are not mistaken for the words of a branch", () => {
  const message = "<b>{who}</b> {n, plural, =0 {nothing} one {# file in {place}} other {# files}}";
  expect(argumentsOf(message)).toEqual(["<b>", "n", "place", "who"]);
  expect(() => argumentsOf("{n, plural, other {#}")).toThrow(SyntaxError);
});
