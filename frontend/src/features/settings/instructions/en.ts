export const instructions = {
  placeholder: "I’m a nurse in Oslo. I write in Norwegian and English.",
};

declare module "@/i18n" {
  interface Messages {
    instructions: typeof instructions;
  }
}
