/** Addresses of the web. */
export const isWeb = (url: string) => /^https?:\/\//i.test(url);

export function hostOf(url: string): string {
  try {
    return new URL(url).host.replace(/^www\./, "");
  } catch {
    return url;
  }
}
