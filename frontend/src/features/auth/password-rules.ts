/** The server's password rules, without its long list of common passwords. */
export const MINIMUM_LENGTH = 8;
const OBVIOUS =
  /^(password|passw0rd|p@ssw0rd|qwerty|letmein|welcome|changeme|deerflow|admin|iloveyou)\d{0,4}$/i;

type RuleId = "ruleLength" | "ruleUncommon";

/** Each rule and whether `password` keeps it. Length counts characters, not UTF-16 units. */
export function passwordRules(password: string): { id: RuleId; kept: boolean }[] {
  const characters = [...password];
  const varied = new Set(characters).size >= 3;
  return [
    { id: "ruleLength", kept: characters.length >= MINIMUM_LENGTH },
    { id: "ruleUncommon", kept: varied && !OBVIOUS.test(password) && !isRun(password) },
  ];
}

export const isAcceptable = (password: string) => passwordRules(password).every((rule) => rule.kept);

/** "12345678", "87654321" */
const isRun = (text: string) =>
  text.length > 2 && ("01234567890".includes(text) || "09876543210".includes(text));
