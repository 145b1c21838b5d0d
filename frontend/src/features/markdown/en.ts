export const web = {
  sources: "{n, plural, one {# source} other {# sources}}",
  source: "Source {n}",
  openAsRead: "View saved copy",
  visit: "Visit site",
  readOn: "Read {date}",
  notRead: "The agent didn’t open this page, or no copy was kept.",
  isFile: "This source is a file. Open it to see what the agent read.",
  gone: "The copy of this page is no longer there.",
  picture: "Picture from {host}",
  showPicture: "Show picture",
  showPictureOf: "Show picture: {title}",
  pictureHint: "Pictures load from other sites only when you ask.",
  pictureFailed: "Couldn’t load this picture",
  openPicture: "Open picture: {title}",
};

declare module "@/i18n" {
  interface Messages {
    web: typeof web;
  }
}
